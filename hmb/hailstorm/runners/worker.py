"""A worker: a process that runs some processors of a topology.

`python -m hmb.hailstorm.runners` reads what it has to run as one line of JSON from its standard input:

    {"topology": "trending:topology", "processors": ["words-0", "count-0"], "registry": ["127.0.0.1", 41234],
     "store": "/path/of/snapshots", "settings": {...}}

It ends with exit code 0 when the topology has ended. If a processor crashes, it prints why as one line and ends with
exit code 1; whoever started it starts it again. It also ends when its standard input is closed, so that no worker
survives the process that started it.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from hmb.hailstorm.errors import HailstormError
from hmb.hailstorm.negotiator import NegotiatorSettings
from hmb.hailstorm.reference import load_topology
from hmb.hailstorm.registry import Registry, RemoteRegistry
from hmb.hailstorm.runners.post import RemotePost
from hmb.hailstorm.runners.processor_thread import ProcessorThread
from hmb.hailstorm.runners.settings import RunSettings
from hmb.hailstorm.runners.topics import SourceTopics
from hmb.hailstorm.snapshots import SnapshotStore, open_store
from hmb.hailstorm.topology import Processors, Topology

LOGGER = logging.getLogger(__name__)
LOOK_INTERVAL = 0.02  # seconds
ENDED_BY_PARENT = 3  # exit code


class Worker:
    """Some processors of a topology as threads of this process, which talk to the others through sockets."""

    def __init__(
        self,
        topology: Topology,
        names: Iterable[str],
        settings: RunSettings,
        store: SnapshotStore,
        registry: Registry,
        host: str = "127.0.0.1",
    ) -> None:
        """Start the processors. `host` is where other processes reach this one."""
        topics = SourceTopics(settings.bootstrap_servers, topology)
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
        """Return when the topology has ended. Raises the exception of a processor that crashed."""
        while any(thread.is_alive() for thread in self.threads):
            self._raise_crash()
            time.sleep(LOOK_INTERVAL)
        self._raise_crash()

    def close(self) -> None:
        """End all threads, without a last snapshot."""
        for thread in self.threads:
            thread.stop()
        self._post.close()
        for thread in self.threads:
            thread.join(5.0)
        self._session.close()

    def _raise_crash(self) -> None:
        for thread in self.threads:
            if not thread.is_alive() and thread.error is not None:
                raise thread.error


def encoded_settings(settings: RunSettings) -> dict[str, Any]:
    """Return settings as JSON can hold them."""
    return asdict(settings)


def decoded_settings(value: dict[str, Any]) -> RunSettings:
    return RunSettings(**{**value, "negotiator": NegotiatorSettings(**value["negotiator"])})


def end_with_the_parent() -> None:
    """End this process when its standard input is closed."""

    def wait() -> None:
        while os.read(0, 4096):  # not through sys.stdin, whose lock would be held when the process ends
            pass
        os._exit(ENDED_BY_PARENT)

    threading.Thread(target=wait, name="hailstorm-parent", daemon=True).start()


def main() -> int:
    """Run the processors that standard input names, and return the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent ends the topology
    logging.basicConfig(format=f"%(asctime)s worker {os.getpid()}: %(message)s")
    request = json.loads(sys.stdin.buffer.readline())
    end_with_the_parent()
    registry = RemoteRegistry(tuple(request["registry"]))
    worker: Worker | None = None
    try:
        worker = Worker(
            load_topology(request["topology"]),
            request["processors"],
            decoded_settings(request["settings"]),
            open_store(request["store"]),
            registry,
        )
        worker.wait()
    except (HailstormError, OSError) as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        return 1
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        raise
    finally:
        if worker is not None:
            worker.close()
        registry.close()
    return 0
