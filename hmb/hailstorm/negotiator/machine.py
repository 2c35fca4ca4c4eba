"""`Negotiator`: leads a topology from phase to phase. The table `STEPS` contains the next phase for each event.

A negotiator has no thread and no connection, and never reads the time. A driver passes the contents of the registry and
the time (`RegistryView`) to the method `step`, and publishes the master state that `step` returns. A test can therefore
run the negotiator step by step, and the simulation can run it with events in thousands of different orders.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Protocol

from hmb.hailstorm.clock import Clock
from hmb.hailstorm.errors import SnapshotError, StaleEpochError
from hmb.hailstorm.master import MasterPhase, MasterState
from hmb.hailstorm.negotiator.conditions import CONDITIONS, NegotiatorSettings, RegistryView, Situation
from hmb.hailstorm.negotiator.steps import STEPS, Step
from hmb.hailstorm.topology import Processors

LOGGER = logging.getLogger(__name__)


class EpochStore(Protocol):
    """The operations of a snapshot store that the negotiator uses."""

    def begin_epoch(self) -> int:
        """Begin a new epoch (a start of the topology), and return its number. It is larger than all earlier numbers.

        After this call, the snapshot store refuses snapshots of earlier epochs.
        """

    def completed(self) -> Clock | None:
        """Return the clock of the newest complete snapshot, or None if no snapshot is complete.

        The clock contains one offset for each partition. The snapshot covers the records below these offsets. It is
        complete if the store has recorded that every processor has saved its part.
        """

    def complete(self, epoch: int, clock: Clock) -> None:
        """Mark the snapshot at `clock` as complete, and delete all other snapshots.

        Before this call, every processor has saved its part of the snapshot. The snapshot covers the records below the
        offsets in `clock`.

        Each start of the topology begins a new epoch. Raises StaleEpochError if `epoch` is not the newest epoch.
        """


class Negotiator:
    """Leads one topology from phase to phase: starts the processors, takes snapshots, and recovers after a crash.

    `snapshots` is the number of snapshots that this negotiator has completed. `why` is the reason for the newest
    start of the processors, for example that a processor did not answer.
    """

    steps = STEPS

    def __init__(self, processors: Processors, store: EpochStore, settings: NegotiatorSettings) -> None:
        self.state = MasterState(MasterPhase.DISCONNECTED, epoch=0)
        self.snapshots = 0
        self.why = "the topology starts"
        self._processors, self._store, self._settings = processors, store, settings
        self._savers = [name for name, processor in processors.by_name.items() if processor.saves]
        self._since = 0.0
        self._is_behind = False  # whether the store failed to mark the newest snapshot as complete
        self._stale: str | None = None  # why the store refused the present epoch; None if the store accepts the epoch

    def step(self, view: RegistryView) -> MasterState | None:
        """Act on at most one event of the table `steps.STEPS`, and return the new master state.

        Return None if no event has occurred.

        Each start of the topology begins a new epoch in the store. If a newer epoch has begun, the store refuses to
        mark a snapshot as complete, and the method returns None.

        If the store cannot mark a snapshot for another reason, for example a full disk, the topology continues. But if
        the snapshot was the last one, the topology ends with an error.

        Raises SnapshotError if the store cannot begin an epoch. Raises TopologyError if a topic has changed.
        """
        situation = self._situation(view)
        for step in self.steps:
            if step.before is self.state.phase and CONDITIONS[step.event](situation):
                before = self.state
                try:
                    self._take(step, situation)
                except StaleEpochError as error:
                    self.state, self._stale = before, str(error)
                    return None  # The next call of `step` begins a new epoch, if this negotiator is still elected.
                return self.state
        return None

    def end_with(self, error: str) -> MasterState:
        """End the topology with an error, and return the new master state."""
        self.state = replace(self.state, phase=MasterPhase.ENDED, number=self.state.number + 1, error=error)
        return self.state

    def waits_for(self, view: RegistryView) -> list[str]:
        """Return the names of the processors that the negotiator waits for in the current phase."""
        return self._situation(view).waits_for()

    def _situation(self, view: RegistryView) -> Situation:
        processors = self._processors
        return Situation(
            self.state,
            view,
            self._settings,
            processors.partitions,
            self._savers,
            processors.by_name,
            self._since,
            self._stale,
        )

    def _take(self, step: Step, situation: Situation) -> None:
        self.state = replace(self.state, phase=step.after, number=self.state.number + 1)
        self._since = situation.view.now
        if step.action is not None:
            getattr(self, step.action)(situation)

    # -- The following methods are the actions in the table STEPS. When an event of the table occurs, the negotiator
    # sets the next phase, and then calls the action. The argument `before` describes the topology before the phase
    # changed.

    def _begin_epoch(self, before: Situation) -> None:
        if before.state.phase is not MasterPhase.DISCONNECTED:
            lost, silent = ", ".join(before.lost()), ", ".join(before.waits_for())
            if before.stale:
                LOGGER.warning("another run uses the same snapshot store: %s", before.stale)
            self.why = before.stale or (f"{lost} disappeared" if lost else f"{silent} did not answer")
            self._stale = None
        epoch = self._store.begin_epoch()
        self.state = MasterState(MasterPhase.INITIALIZE, epoch, completed=self._store.completed())

    def _fail(self, before: Situation) -> None:
        self.state = replace(self.state, error="; ".join(before.failures()))

    def _refuse_to_lose_a_snapshot(self, before: Situation) -> None:
        self.state = replace(self.state, error=before.missing_snapshot())

    def _fail_to_save(self, before: Situation) -> None:
        self.state = replace(self.state, error="the last snapshot was not saved: " + "; ".join(before.not_saved()))

    def _choose_snapshot(self, before: Situation) -> None:
        snapshot = before.newest_common()
        starts = {partition: before.report(name).start or 0 for partition, name in before.spouts.items()}
        clock = Clock({**starts, **(snapshot or {})})  # A partition that is not in the snapshot begins at its start.
        self.state = replace(self.state, clock=clock, snapshot=snapshot, completed=snapshot)

    def _flow(self, before: Situation) -> None:
        self.state = replace(self.state, clock=None, snapshot=None)

    def _make_it_the_last(self, before: Situation) -> None:
        self.state = replace(self.state, ending=True)

    def _desire_clock(self, before: Situation) -> None:
        positions = {partition: before.report(name).position or 0 for partition, name in before.spouts.items()}
        self.state = replace(self.state, clock=Clock(positions))

    def _complete(self, before: Situation) -> None:
        clock = before.state.clock
        assert clock is not None
        try:
            self._store.complete(before.state.epoch, clock)
        except SnapshotError as error:
            self._leave_incomplete(before, str(error))
            return
        self.snapshots += 1
        if self._is_behind:
            LOGGER.warning("the snapshots are complete again: the newest one is at %s", clock)
            self._is_behind = False
        self.state = replace(self.state, completed=clock, clock=None)

    def _leave_incomplete(self, before: Situation, why: str) -> None:
        """Let the topology continue after an error of the store, although the current snapshot is not complete.

        `why` describes the error. If the topology was about to end after this snapshot, end it with an error.
        """
        LOGGER.warning("the snapshot at %s is not complete: %s", before.state.clock, why)
        self._is_behind = True
        phase, error = MasterPhase.FLOWING, None
        if before.state.ending:
            phase, error = MasterPhase.ENDED, f"the last snapshot was not saved: {why}"
        self.state = replace(self.state, phase=phase, clock=None, error=error)
