"""Distributes the processors of a topology over worker processes of this machine.

In Python, only one thread of a process runs at a time. A topology therefore becomes faster with more processes, but not
with more threads. The parent process starts the workers, and runs the registry server and the negotiator. Each worker
runs several processors, for example tags-0, which is instance 0 of the node `tags`:
    this process                 worker 0                         worker 1
    registry server  <---------  tags-0, count-0, topn-0          tags-1, count-1
    negotiator                        |  ^                             |  ^
                                      +--+---- channels (TCP) ---------+--+

The instances of each node are distributed over the workers in turn. With two workers, instances 0 and 2 run in worker
0, and instance 1 runs in worker 1. If a worker dies, the parent process starts a new worker with the same processors.
The topology then recovers from its last complete snapshot.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from hmb.hailstorm.errors import HailstormError, TopologyError
from hmb.hailstorm.reference import reference_to
from hmb.hailstorm.registry import RegistryServer
from hmb.hailstorm.runners.base import Runner
from hmb.hailstorm.runners.settings import RunSettings
from hmb.hailstorm.runners.worker import encoded_settings
from hmb.hailstorm.snapshots import SnapshotStore
from hmb.hailstorm.topology import Topology

LOGGER = logging.getLogger(__name__)
MAX_REASON = 1 << 16  # bytes; the capacity of a pipe
ENDED_BY_PARENT = 3  # the exit code of a worker whose standard input was closed
END_TIMEOUT = 10.0  # seconds in which a worker must end before the parent process kills it


class WorkerProcess:
    """A worker process. When one of its processors crashes, the worker writes the reason into a pipe, and ends.

    The worker shares the standard output of its parent process, because a sink may print its tuples.
    """

    def __init__(self, request: dict[str, Any], names: Sequence[str]) -> None:
        self.names, self._request = names, request
        self._reason: str | None = None  # what the worker wrote into the pipe; None until this process has read it
        self._pipe, writing_end = os.pipe()
        os.set_blocking(self._pipe, False)
        command = [sys.executable, "-m", "hmb.hailstorm.runners"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[writing_end])
        os.close(writing_end)
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({**request, "reason": writing_end}).encode() + b"\n")
        self.process.stdin.flush()  # The worker ends when this pipe is closed, so the pipe stays open.

    @property
    def exit_code(self) -> int | None:
        """The exit code, or -N if the signal N ended the worker. None while the worker runs."""
        return self.process.poll()

    def why(self) -> str:
        """Return the reason why the worker ended.

        This is the text that the worker wrote into the pipe. If the worker wrote nothing, it is the signal or the exit
        code, for example "signal 9" or "exit code 1".
        """
        if self._reason is None:
            try:
                self._reason = os.read(self._pipe, MAX_REASON).decode(errors="replace")
            except BlockingIOError:  # A process that the user's code has started still has the pipe open.
                self._reason = ""
            os.close(self._pipe)
        code = self.process.returncode
        return self._reason or (f"signal {-code}" if code < 0 else f"exit code {code}")

    def successor(self) -> WorkerProcess:
        """Start a new worker with the same processors."""
        return WorkerProcess(self._request, self.names)

    def end(self) -> None:
        """End the worker, and close the pipes to it."""
        assert self.process.stdin is not None
        if self.process.stdin.closed:
            return
        self.process.stdin.close()
        try:
            self.process.wait(END_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()  # This wait ends at once, because a process cannot ignore a kill.
        self.why()  # This call closes the pipe.


class ProcessRunner(Runner):
    """A topology in worker processes. If a worker dies or hangs, the runner starts a new worker instead."""

    def __init__(self, topology: Topology, settings: RunSettings, store: SnapshotStore, workers: int) -> None:
        """Start the topology in worker processes. Each worker imports the topology and opens the store.

        Raises TopologyError if `workers` is below 1. Also raises TopologyError if another process cannot import the
        topology or cannot open the store.
        """
        if workers < 1:
            raise TopologyError(f"a topology runs in at least 1 worker, not {workers}")
        location = getattr(store, "location", None)
        if location is None:
            raise TopologyError(f"other processes cannot open a {type(store).__name__}: use a directory or SQLite")
        reference = reference_to(topology)
        super().__init__(topology, settings, store)
        self._server = RegistryServer(self.registry)
        placed = [
            [name for name, it in self.processors.by_name.items() if it.index % workers == number]
            for number in range(workers)
        ]
        common = {
            "topology": reference,
            "registry": self._server.address,
            "store": location,
            "settings": encoded_settings(settings),
        }
        self.workers = [WorkerProcess({**common, "processors": names}, names) for names in placed if names]

    def _restart_processors(self) -> None:
        for number, worker in enumerate(self.workers):
            if worker.exit_code is not None:
                why = worker.why()
                worker.end()
                LOGGER.warning("worker %d (%s) ended and is started again: %s", number, ", ".join(worker.names), why)
                self.restarts.note(self.master, f"worker {number} ended: {why}")
                time.sleep(self.settings.restart_pause)
                self.workers[number] = worker.successor()

    def _replace_silent(self, names: list[str]) -> None:
        super()._replace_silent(names)
        for worker in self.workers:
            if not set(names).isdisjoint(worker.names):
                worker.process.kill()

    def _end_processors(self) -> None:
        for worker in self.workers:
            worker.end()
        self._server.close()

    def _are_processors_running(self) -> bool:
        return any(worker.exit_code is None for worker in self.workers)

    def _processor_error(self) -> HailstormError | None:
        failed = (worker for worker in self.workers if worker.exit_code not in (0, ENDED_BY_PARENT))
        return next((HailstormError(worker.why()) for worker in failed), None)

    def _unfinished(self) -> list[str]:
        return [name for worker in self.workers if worker.exit_code == ENDED_BY_PARENT for name in worker.names]
