"""A worker runs some processors of a topology in one process. Sockets connect the processors of all workers."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Self

from hmb.defaults import DEFAULT_HOST
from hmb.hailstorm.negotiator import NegotiatorSettings
from hmb.hailstorm.registry import Registry
from hmb.hailstorm.runners.base import LOOK_INTERVAL
from hmb.hailstorm.runners.processor_thread import ProcessorThread
from hmb.hailstorm.runners.settings import RunSettings
from hmb.hailstorm.runners.topics import SourceTopics
from hmb.hailstorm.runners.transport.post import RemotePost
from hmb.hailstorm.snapshots import SnapshotStore
from hmb.hailstorm.topology import Processors, Topology


class Worker:
    """Runs some processors in threads of this process. Sockets connect the processors of all workers."""

    def __init__(
        self,
        topology: Topology,
        names: Iterable[str],
        settings: RunSettings,
        store: SnapshotStore,
        registry: Registry,
        host: str = DEFAULT_HOST,
    ) -> None:
        """Start the processors. Processors of other workers connect to this process at the address `host`."""
        topics = SourceTopics(settings.bootstrap_servers, topology, settings.security)
        processors = Processors(topology, topics.partitions)
        store.claim(topics.fingerprint(processors))
        names = list(names)
        self._session = registry.join(f"post of {', '.join(names)}")
        self._post = RemotePost(self._session, host)
        self.threads = [
            ProcessorThread(
                processors, processors.named(name), settings, store, registry, self._post, self._post.address
            )
            for name in names
        ]
        for thread in self.threads:
            thread.start()

    def wait(self) -> None:
        """Wait until the topology has ended. If a processor crashes before that, raise its exception at once.

        If a processor fails while the topology ends, first wait for the other processors of this worker,
        because they may still be writing their last outputs. Then raise the exception.
        """
        while any(thread.is_alive() for thread in self.threads):
            self._raise_crash(thread for thread in self.threads if not thread.has_ended)
            time.sleep(LOOK_INTERVAL)
        self._raise_crash(self.threads)

    def close(self) -> None:
        """End all threads of this worker, without a last snapshot."""
        for thread in self.threads:
            thread.stop()
        self._post.close()
        for thread in self.threads:
            thread.join(5.0)
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @staticmethod
    def _raise_crash(threads: Iterable[ProcessorThread]) -> None:
        for thread in threads:
            if not thread.is_alive() and thread.error is not None:
                raise thread.error


def encoded_settings(settings: RunSettings) -> dict[str, Any]:
    """Return the settings as a dict that JSON can encode."""
    return asdict(settings)


def decoded_settings(value: dict[str, Any]) -> RunSettings:
    return RunSettings(**{**value, "negotiator": NegotiatorSettings(**value["negotiator"])})
