"""The negotiator's table: each row has a phase, an event, the phase to which the event leads, and an action.

The table `STEPS` determines what `Negotiator` does. The documentation draws the state machine from the same
table. Several rows can begin with the same phase. The negotiator then takes the first of these rows whose event
has occurred, so the order of the rows matters. For example, the rows for a lost session come before the rows
for other problems. The rows that end the topology after a failure come before the rows that begin a new epoch.

Source: Hailstorm, chapter 3.6, "Negotiator", figure 4. HMB adds two phases to the state machine of the paper:
SpoutsPaused(clock) and Ended. HMB also adds the steps for failures.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from hmb.hailstorm.master import MasterPhase


class NegotiatorEvent(Enum):
    """An event that changes the phase of a topology.

    The negotiator detects most events in the reports of the processors. Other events have another cause: for
    example, GRACE_OVER means that enough time has passed.
    """

    ELECTED = "the negotiator gets the master node"
    SESSION_LOST = "the negotiator's session ends, and its master node disappears"
    PROCESSOR_FAILED = "a processor reports an error that a restart does not repair"
    EPOCH_STALE = "the snapshot store has a newer epoch, of a negotiator that is gone"
    PROCESSOR_LOST = "an entry of a processor disappears, or is of another epoch"
    PROCESSOR_SILENT = "a processor does not answer for too long"
    STOP_REQUESTED = "the user ends the topology, or the spouts have read all of bounded topics"
    SNAPSHOT_MISSING = "a snapshot at the newest complete clock is missing"
    ALL_REGISTERED = "all processors have registered, with the clocks of their snapshots"
    ALL_READY = "all states are restored, and all spouts have rewound"
    GRACE_OVER = "the grace period is over"
    ALL_PAUSED = "all spouts are paused; their positions are the clock"
    ALL_SPLIT = "all states are split at the clock"
    LAST_SAVED = "all states at the clock are saved, and this snapshot is the last one"
    ALL_SAVED = "all states at the clock are saved"
    LAST_NOT_SAVED = "a processor cannot save its last state"
    NOT_SAVED = "a processor cannot save its state; the next round tries again"


class Step(NamedTuple):
    """One row of `STEPS`: `event` leads from phase `before` to phase `after`.

    `action` is the name of a method of `Negotiator`, or None.
    """

    before: MasterPhase
    event: NegotiatorEvent
    after: MasterPhase
    action: str | None = None

    @property
    def because(self) -> str:
        return self.event.value


_P, _E = MasterPhase, NegotiatorEvent
# In these phases, the negotiator waits for reports from the processors of a running topology. If a report does not
# arrive in time, the negotiator begins a new epoch (a new start of the topology).
_WAITING = (_P.SPOUTS_REWIND, _P.SPOUTS_PAUSED, _P.SPOUTS_PAUSED_AT, _P.FLOWING_TO)
_RUNNING = (_P.FLOWING, *_WAITING)

STEPS = (
    Step(_P.DISCONNECTED, _E.ELECTED, _P.INITIALIZE, "_begin_epoch"),
    *(Step(before, _E.SESSION_LOST, _P.DISCONNECTED) for before in (_P.INITIALIZE, *_RUNNING)),
    *(Step(before, _E.PROCESSOR_FAILED, _P.ENDED, "_fail") for before in (_P.INITIALIZE, *_RUNNING)),
    *(Step(before, _E.EPOCH_STALE, _P.INITIALIZE, "_begin_epoch") for before in _RUNNING),
    *(Step(before, _E.PROCESSOR_LOST, _P.INITIALIZE, "_begin_epoch") for before in _RUNNING),
    *(Step(before, _E.PROCESSOR_SILENT, _P.INITIALIZE, "_begin_epoch") for before in _WAITING),
    Step(_P.INITIALIZE, _E.STOP_REQUESTED, _P.ENDED),
    Step(_P.INITIALIZE, _E.SNAPSHOT_MISSING, _P.ENDED, "_refuse_to_lose_a_snapshot"),
    Step(_P.INITIALIZE, _E.ALL_REGISTERED, _P.SPOUTS_REWIND, "_choose_snapshot"),
    Step(_P.SPOUTS_REWIND, _E.ALL_READY, _P.FLOWING, "_flow"),
    Step(_P.FLOWING, _E.STOP_REQUESTED, _P.SPOUTS_PAUSED, "_make_it_the_last"),
    Step(_P.FLOWING, _E.GRACE_OVER, _P.SPOUTS_PAUSED),
    Step(_P.SPOUTS_PAUSED, _E.ALL_PAUSED, _P.SPOUTS_PAUSED_AT, "_desire_clock"),
    Step(_P.SPOUTS_PAUSED_AT, _E.ALL_SPLIT, _P.FLOWING_TO),
    Step(_P.FLOWING_TO, _E.LAST_SAVED, _P.ENDED, "_complete"),
    Step(_P.FLOWING_TO, _E.ALL_SAVED, _P.FLOWING, "_complete"),
    Step(_P.FLOWING_TO, _E.LAST_NOT_SAVED, _P.ENDED, "_fail_to_save"),
    Step(_P.FLOWING_TO, _E.NOT_SAVED, _P.FLOWING, "_flow"),
)
