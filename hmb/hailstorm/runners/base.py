"""The base class of all runners. It runs the registry and the negotiator until the topology has ended."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from typing import Self

from hmb.hailstorm.errors import HailstormError
from hmb.hailstorm.master import MasterState, Report
from hmb.hailstorm.registry import LocalRegistry
from hmb.hailstorm.runners.negotiator_thread import NegotiatorThread
from hmb.hailstorm.runners.restarts import RestartLimit
from hmb.hailstorm.runners.settings import RunResult, RunSettings, left_out, saved_states
from hmb.hailstorm.runners.start_deadline import StartDeadline
from hmb.hailstorm.runners.topics import CheckedStore, SourceTopics
from hmb.hailstorm.snapshots import SnapshotStore
from hmb.hailstorm.topology import Processors, Topology

LOGGER = logging.getLogger(__name__)
END_TIMEOUT = 2.0  # seconds that a runner waits for the processors after the negotiator has ended
LOOK_INTERVAL = 0.02  # seconds between two checks for crashed processors


class Runner(ABC):
    """Runs a topology: starts its processors and its negotiator, and restarts them if they crash.

        with ThreadRunner(topology, settings, store) as runner:
            ...
            result = runner.stop()

    The method `stop` takes a last snapshot, and waits until the topology has ended. The method `wait` only waits.
    The end of the `with` block ends a running topology immediately, without a last snapshot.
    """

    negotiator_thread: type[NegotiatorThread] = NegotiatorThread

    def __init__(self, topology: Topology, settings: RunSettings, store: SnapshotStore) -> None:
        """Start the negotiator, the thread that leads the topology.

        Raises TopologyError if the topology is invalid, if one of its topics does not exist, or if `store` belongs to
        another topology.
        """
        self.settings, self.store = settings, store
        topics = SourceTopics(settings.bootstrap_servers, topology, settings.security)
        self.processors = Processors(topology, topics.partitions)
        store.claim(topics.fingerprint(self.processors))
        # With "end", the topology reads only existing records. If a topic is empty, its name may be wrong.
        if settings.until == "end":
            topics.warn_of_empty()
        self.registry = LocalRegistry()
        self.restarts = RestartLimit(settings.max_restarts)
        self._checked = CheckedStore(store, topics)
        self._snapshots_before = 0  # number of snapshots that negotiators completed before they crashed
        self._is_closed = self._stop_requested = False
        self._start_deadline = StartDeadline(settings.start_timeout)
        self._ended_at: float | None = None
        self.negotiator = self._start_negotiator()

    @property
    def master(self) -> MasterState | None:
        """The negotiator's newest decision, which contains the topology's phase, or None before the first decision."""
        return self.negotiator.last

    @property
    def living(self) -> dict[str, Report]:
        """The newest reports of the living processors."""
        return self.negotiator.living

    @property
    def snapshots(self) -> int:
        """The number of complete snapshots in this run."""
        return self._snapshots_before + self.negotiator.snapshots

    def waits_for(self) -> list[str]:
        """Return the names of the processors that the negotiator waits for in the current phase.

        When all of them have answered, the topology can enter the next phase.
        """
        return self.negotiator.waits_for()

    def wait(self, timeout: float | None = None) -> RunResult:
        """Wait until the topology has ended, and return its result. Meanwhile, restart processors that crash.

        Raises HailstormError if the topology ends with an error. Raises TimeoutError if the topology is still running
        after `timeout` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.has_ended():
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"after {timeout:g} s, the topology is still in the phase {self.master}")
            self.supervise()
            time.sleep(LOOK_INTERVAL)
        self._end_processors()
        return self._result()

    def stop(self, timeout: float | None = None) -> RunResult:
        """Request a last snapshot and the end of the topology, wait for the end, and return the result."""
        self.request_stop()
        return self.wait(timeout)

    def request_stop(self) -> None:
        """Request a last snapshot and the end of the topology. Do not wait for the end."""
        self._stop_requested = True
        self.negotiator.request_stop()

    def supervise(self) -> None:
        """Restart crashed processors. Restart a crashed negotiator, unless a HailstormError ended it.

        After too many restarts of processors without a new snapshot, the topology ends with an error.

        If a HailstormError ended the negotiator, for example because the snapshot store failed, the method closes
        the runner and raises this error.
        """
        if self._is_closed or self.negotiator.has_ended:
            return
        self._restart_processors()
        if not self.negotiator.is_alive() and not self.negotiator.has_ended:
            if isinstance(self.negotiator.error, HailstormError):
                self.close()
                raise self.negotiator.error
            LOGGER.warning("the negotiator crashed and is started again: %r", self.negotiator.error)
            self._snapshots_before += self.negotiator.snapshots
            self.negotiator = self._start_negotiator()
        if self.restarts.problem is not None:
            self.negotiator.end_with(self.restarts.problem)
        self._look_for_silence()

    def has_ended(self) -> bool:
        """Return whether the topology has ended: its negotiator and all its processors have ended.

        A processor ends when it reads the negotiator's last decision in the registry. A processor that starts too late
        misses this decision, and does not end. After the negotiator's end, the method therefore gives the processors
        END_TIMEOUT more seconds. Then it returns True even if some still run.
        """
        if not self.negotiator.has_ended or self.negotiator.is_alive():
            return False
        self._ended_at = self._ended_at or time.monotonic()
        return not self._are_processors_running() or time.monotonic() - self._ended_at > END_TIMEOUT

    def close(self) -> None:
        """End all threads or processes of the topology, without a last snapshot."""
        self._is_closed = True
        self.negotiator.kill()
        self._end_processors()
        self.negotiator.join(5.0)
        self.registry.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # -- methods that each kind of runner defines

    @abstractmethod
    def _restart_processors(self) -> None:
        """Start crashed processors again, and count each restart."""

    @abstractmethod
    def _end_processors(self) -> None:
        """End all processors at once, without a last snapshot."""

    @abstractmethod
    def _are_processors_running(self) -> bool:
        """Return whether at least one processor still runs (its thread or its process)."""

    @abstractmethod
    def _processor_error(self) -> HailstormError | None:
        """Return the error of a processor that crashed and was not started again, or None."""

    @abstractmethod
    def _unfinished(self) -> list[str]:
        """Return the names of the processors that the runner had to end, because they did not end by themselves."""

    def _replace_silent(self, names: list[str]) -> None:
        """Log a warning about processors that have not registered in time.

        `names` contains the names of these processors. A subclass can override this method to replace the processors.
        """
        LOGGER.warning("the topology still waits for the registration of these processors: %s", ", ".join(names))

    # -- methods that all runners share

    def _start_negotiator(self) -> NegotiatorThread:
        negotiator = self.negotiator_thread(self.processors, self._checked, self.registry, self.settings.negotiator)
        if self._stop_requested:
            negotiator.request_stop()
        negotiator.start()
        return negotiator

    def _look_for_silence(self) -> None:
        """Call `_replace_silent` if processors take too long to register for a new epoch of the topology.

        At first, the time limit is the setting `start_timeout`, for example 10 s. Each call of `_replace_silent`
        doubles the limit until it reaches 60 s. In the example, the next limits are 20, 40 and 60 s. When all
        processors have registered, the limit is `start_timeout` again.
        """
        if self._start_deadline.has_passed(self.master, time.monotonic()):
            self._replace_silent(self.waits_for())

    def _result(self) -> RunResult:
        master, error = self.master, self._processor_error()
        assert master is not None
        if master.error is not None:
            raise HailstormError(master.error)
        if error is not None:
            raise error
        holding = [name for name in self._unfinished() if self.processors.by_name[name].holds_outputs]
        if holding and master.completed is not None:
            what = f"{', '.join(holding)} did not end in time, so the last outputs may be missing"
            raise HailstormError(f"{what}. When the topology starts again, it writes the missing outputs")
        states = saved_states(self.processors, self.store)
        late, dead = left_out(self.processors, self.store)
        return RunResult(master.completed, states, self.snapshots, master.epoch, late, dead)
