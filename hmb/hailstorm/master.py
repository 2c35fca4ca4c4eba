"""The master state and the reports: the values through which the negotiator and the processors communicate.

The negotiator and the processors never send each other messages. The negotiator writes one value, the *master state*,
into the registry, and each processor watches this value. Each processor writes one value, its *report*, into its own
node `living/<name>`, and the negotiator watches the reports. The master state and each report are complete values. A
reader that missed earlier values therefore needs only the newest value.

A report answers one master state, and contains the number of this master state. The negotiator counts the answer only
if this number is the number of the current master state. Without this rule, a slow spout would cause wrong results. The
spout's report of the previous pause would look like an answer to the current pause. But the spout has not paused again
yet, and may read further records.

The negotiator and the processors exchange their values through the *nodes* of the registry. A node is a value with a
path, like a small file. The negotiator writes the master state into the node `master`, and each processor reads this
node. A processor, for example `count-0`, writes its report into its own node `living/count-0`. The negotiator reads the
nodes of all processors.

This example shows how a topology takes a snapshot. The negotiator writes one phase after the other into the master
state. In three of these phases, it waits for reports, here of the spout `tags-0` and the bolt `count-0`:
    phase              report of a processor
    Flowing(None)      no report: the topology processes records, and takes no snapshot
    SpoutsPaused       tags-0 has paused before offset 7, so the clock C of the snapshot is (tags-0: 7)
    SpoutsPaused(C)    count-0 has split its state at C: the snapshot gets no tuples of offset 7 or later
    Flowing(C)         count-0 has stored its snapshot at C, while tags-0 reads again
    Flowing(None)      no report: the snapshot is complete, so the master state contains C as `completed`

After a crash, all processors restart in a new *epoch*, which is a number. The negotiator's master state and the report
of each processor contain the epoch in which they were written. The negotiator and the processors can therefore ignore
values of an older epoch.

Source: the Hailstorm paper, chapter 3.2, "Apache Zookeeper", and chapter 3.6, "Negotiator".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hmb.hailstorm.clock import Clock


class MasterPhase(Enum):
    """The phases of a topology, for example at its start, while data flows, or during a snapshot.

    The negotiator decides when the next phase begins. The names of most phases come from the Hailstorm paper. In the
    two phases whose names contain `(clock)`, the topology takes a snapshot. The clock of a snapshot contains one offset
    for each partition, and the snapshot covers the records below these offsets.
    """

    DISCONNECTED = "Disconnected"
    INITIALIZE = "Initialize"
    SPOUTS_REWIND = "SpoutsRewind"
    FLOWING = "Flowing(None)"
    SPOUTS_PAUSED = "SpoutsPaused"
    SPOUTS_PAUSED_AT = "SpoutsPaused(clock)"
    FLOWING_TO = "Flowing(clock)"
    ENDED = "Ended"


@dataclass(frozen=True)
class MasterState:
    """The newest decision of the negotiator: the phase of the topology, and the values that this phase needs.

    The negotiator writes this value to the registry's node `master`, and all processors read it there. A clock contains
    one offset for each partition. A snapshot at a clock covers the records below these offsets.

    epoch        the number of this start of the topology; each recovery begins a new epoch
    number       the number of this master state in its epoch, from 0
    clock        while the spouts rewind: the clock at which they begin; during a snapshot: the clock of this snapshot
    snapshot     while the spouts rewind: the clock of the snapshot to restore, or None if all states begin empty
    completed    the clock of the newest complete snapshot, for which every processor has saved its state
    ending       whether the topology ends after the snapshot in progress; the spouts then stay paused
    error        at the end: the error that ended the topology, or None
    """

    phase: MasterPhase
    epoch: int
    number: int = 0
    clock: Clock | None = None
    snapshot: Clock | None = None
    completed: Clock | None = None
    ending: bool = False
    error: str | None = None

    @property
    def lets_spouts_flow(self) -> bool:
        return self.phase in (MasterPhase.FLOWING, MasterPhase.FLOWING_TO) and not self.ending

    def to_value(self) -> dict[str, Any]:
        return {name: _encoded(value) for name, value in vars(self).items()} | {"phase": self.phase.value}

    @classmethod
    def from_value(cls, value: dict[str, Any]) -> MasterState:
        clocks = {name: _clock(value[name]) for name in ("clock", "snapshot", "completed")}
        return cls(**{**value, **clocks, "phase": MasterPhase(value["phase"])})

    def __str__(self) -> str:
        name = self.phase.value.replace("(clock)", f"{self.clock}")
        return f"{name}, epoch {self.epoch}"


@dataclass
class Report:
    """The state of one processor, as the processor reports it in its node of the registry.

    epoch        the epoch of the master state that the processor follows; 0 before it has seen a master state
    seen         the number of the newest master state that the processor has seen
    address      (host, port) where upstream processors in other processes connect; None if all run in one process
    saved        the clocks at which the processor had intact snapshots when it registered
    start        only in the report of a spout: the offset where the spout would begin without a snapshot
    is_ready     whether the processor has restored its snapshot; for a spout, also whether it has rewound
    position     only in the report of a paused spout: the offset of the next record; None while the spout reads
    is_at_end    only for a spout that reads a bounded topic: whether it has read the whole partition
    split        the newest clock at which the processor has split its state
    stored       the clock of the newest snapshot that the processor saved or restored in this epoch
    not_saved    (clock, reason) if the processor could not save its snapshot at this clock; otherwise None
    failure      the reason why the processor cannot continue, even after a restart
    figures      counts and sizes for displays
    """

    epoch: int = 0
    seen: int = -1
    address: tuple[str, int] | None = None
    saved: list[Clock] = field(default_factory=list)
    start: int | None = None
    is_ready: bool = False
    position: int | None = None
    is_at_end: bool = False
    split: Clock | None = None
    stored: Clock | None = None
    not_saved: tuple[Clock, str] | None = None
    failure: str | None = None
    figures: dict[str, Any] = field(default_factory=dict)

    def to_value(self) -> dict[str, Any]:
        return {name: _encoded(value) for name, value in vars(self).items()}

    @classmethod
    def from_value(cls, value: dict[str, Any]) -> Report:
        report = cls(**value)
        report.saved = [Clock.from_value(clock) for clock in value["saved"]]
        report.split, report.stored = _clock(value["split"]), _clock(value["stored"])
        if value["not_saved"] is not None:
            clock, why = value["not_saved"]
            report.not_saved = Clock.from_value(clock), why
        return report


def _encoded(value: Any) -> Any:
    """Return a copy of a value with a list in place of each clock. The codec can store lists, but no clocks."""
    if isinstance(value, Clock):
        return value.to_value()
    if isinstance(value, dict):
        return {key: _encoded(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(map(_encoded, value))
    return value


def _clock(value: Any) -> Clock | None:
    return None if value is None else Clock.from_value(value)
