"""The base class of all runners: topics, registry, negotiator, and waiting for the end."""

from __future__ import annotations

import logging
import time
from typing import Self

from hmb.hailstorm.errors import HailstormError
from hmb.hailstorm.master import MasterPhase, MasterState, Report
from hmb.hailstorm.registry import LocalRegistry
from hmb.hailstorm.runners.negotiator_thread import NegotiatorThread
from hmb.hailstorm.runners.restarts import RestartLimit
from hmb.hailstorm.runners.settings import RunResult, RunSettings, saved_states
from hmb.hailstorm.runners.topics import CheckedStore, SourceTopics
from hmb.hailstorm.snapshots import SnapshotStore
from hmb.hailstorm.topology import Processors, Topology

LOGGER = logging.getLogger(__name__)
END_TIMEOUT = 2.0  # seconds from the end of the negotiator until processors must have ended
LOOK_INTERVAL = 0.02  # seconds between two checks for crashed processors


class Runner:
    """A topology that runs: it starts the processors and the negotiator, and starts them again after a crash.

        with ThreadRunner(topology, settings, store) as runner:
            ...
            result = runner.stop()

    `wait` returns when the topology has ended; `stop` ends it with a last snapshot. Leaving the block ends it at once.
    """

    negotiator_thread: type[NegotiatorThread] = NegotiatorThread

    def __init__(self, topology: Topology, settings: RunSettings, store: SnapshotStore) -> None:
        """Start the negotiator.

        Raises TopologyError if the topology is wrong, a topic is missing or the store belongs to another topology.
        """
        self.settings, self.store = settings, store
        topics = SourceTopics(settings.bootstrap_servers, topology)
        self.processors = Processors(topology, topics.partitions)
        store.claim(topics.fingerprint(self.processors))
        self.registry = LocalRegistry()
        self.restarts = RestartLimit(settings.max_restarts)
        self._checked = CheckedStore(store, topics)
        self._snapshots_before = 0  # number of complete snapshots of negotiators that have crashed
        self._is_closed = self._stop_requested = False
        self._waiting_since = (0, 0.0)  # the epoch that waits for processors, and the time (s) since which it waits
        self._ended_at: float | None = None
        self.negotiator = self._start_negotiator()

    @property
    def master(self) -> MasterState | None:
        """The newest master state."""
        return self.negotiator.last

    @property
    def living(self) -> dict[str, Report]:
        """The reports of the living processors."""
        return self.negotiator.living

    @property
    def snapshots(self) -> int:
        """The number of complete snapshots."""
        return self._snapshots_before + self.negotiator.snapshots

    def waits_for(self) -> list[str]:
        """Return the names of the processors whose answer the present phase waits for."""
        return self.negotiator.waits_for()

    def wait(self, timeout: float | None = None) -> RunResult:
        """Wait until the topology has ended. Until then, start crashed processors again.

        Raises HailstormError if the topology ended with an error, TimeoutError if it has not ended in time.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.has_ended():
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"the topology has not ended within {timeout:g} s; it is in {self.master}")
            self.supervise()
            time.sleep(LOOK_INTERVAL)
        self._end_processors()
        return self._result()

    def stop(self, timeout: float | None = None) -> RunResult:
        """Take a last snapshot, end the topology, and return the result."""
        self.request_stop()
        return self.wait(timeout)

    def request_stop(self) -> None:
        """Request a last snapshot and the end of the topology, and return at once."""
        self._stop_requested = True
        self.negotiator.request_stop()

    def supervise(self) -> None:
        """Start crashed processors and a crashed negotiator again. End the topology if they crash without progress.

        Raises HailstormError if the negotiator cannot use the snapshot store.
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
        """Return whether the negotiator has ended, and all processors have ended or had END_TIMEOUT for it.

        The timeout is for a processor that starts while the negotiator ends, because this processor does not learn of
        the end.
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

    def _restart_processors(self) -> None:
        """Start crashed processors again, and record each restart."""
        raise NotImplementedError

    def _end_processors(self) -> None:
        """End all processors at once."""
        raise NotImplementedError

    def _are_processors_running(self) -> bool:
        raise NotImplementedError

    def _processor_error(self) -> Exception | None:
        """Return the exception of a processor that crashed after the last snapshot."""
        raise NotImplementedError

    def _replace_silent(self, names: list[str]) -> None:
        """End processors that have not joined the present epoch in time. They are then started again."""
        LOGGER.warning("the topology waits for %s: not registered for too long", ", ".join(names))

    # -- methods that all runners share

    def _start_negotiator(self) -> NegotiatorThread:
        negotiator = self.negotiator_thread(self.processors, self._checked, self.registry, self.settings.negotiator)
        if self._stop_requested:
            negotiator.request_stop()
        negotiator.start()
        return negotiator

    def _look_for_silence(self) -> None:
        """Notice processors that hang: they do not register for a new epoch."""
        master, now = self.master, time.monotonic()
        epoch, since = self._waiting_since
        if master is None or master.phase is not MasterPhase.INITIALIZE or master.epoch != epoch:
            self._waiting_since = (master.epoch if master else 0), now
        elif now - since > self.settings.start_timeout:
            self._waiting_since = epoch, now
            self._replace_silent(self.waits_for())

    def _result(self) -> RunResult:
        master, error = self.master, self._processor_error()
        assert master is not None
        if master.error is not None:
            raise HailstormError(master.error)
        if error is not None:
            raise error
        states = saved_states(self.processors, self.store)
        return RunResult(master.completed, states, self.snapshots, master.epoch)
