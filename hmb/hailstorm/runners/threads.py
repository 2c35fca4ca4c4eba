"""A runner that runs all processors of a topology as threads of this process."""

from __future__ import annotations

import logging
import time

from hmb.hailstorm.errors import HailstormError
from hmb.hailstorm.runners.base import Runner
from hmb.hailstorm.runners.processor_thread import ProcessorThread
from hmb.hailstorm.runners.settings import RunSettings
from hmb.hailstorm.runners.transport.post import Post
from hmb.hailstorm.snapshots import SnapshotStore
from hmb.hailstorm.topology import Processor, Topology

LOGGER = logging.getLogger(__name__)


class ThreadRunner(Runner):
    """A topology whose processors are threads. If a thread crashes, the runner starts a new thread instead."""

    processor_thread: type[ProcessorThread] = ProcessorThread

    def __init__(self, topology: Topology, settings: RunSettings, store: SnapshotStore) -> None:
        super().__init__(topology, settings, store)
        self._post = Post()
        self.threads = {name: self._start(it) for name, it in self.processors.by_name.items()}

    def _restart_processors(self) -> None:
        for name, thread in self.threads.items():
            if not thread.is_alive() and not thread.has_ended:
                LOGGER.warning("%s crashed and is started again: %r", name, thread.error)
                self.restarts.note(self.master, f"{name} crashed: {thread.error!r}")
                time.sleep(self.settings.restart_pause)
                self.threads[name] = self._start(self.processors.by_name[name])

    def _end_processors(self) -> None:
        for thread in self.threads.values():
            thread.stop()
        self._post.close()
        for thread in self.threads.values():
            thread.join(5.0)

    def _are_processors_running(self) -> bool:
        return any(thread.is_alive() for thread in self.threads.values())

    def _processor_error(self) -> HailstormError | None:
        for name, thread in self.threads.items():
            if thread.error is not None:
                crash = HailstormError(f"{name} crashed while the topology ended: {thread.error!r}")
                return thread.error if isinstance(thread.error, HailstormError) else crash
        return None

    def _unfinished(self) -> list[str]:
        return [name for name, thread in self.threads.items() if thread.is_alive() or not thread.has_ended]

    def _start(self, processor: Processor) -> ProcessorThread:
        thread = self.processor_thread(
            self.processors, processor, self.settings, self.store, self.registry, self._post
        )
        thread.start()
        return thread
