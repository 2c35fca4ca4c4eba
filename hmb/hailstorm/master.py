"""The master state and the reports: the values through which the negotiator and the processors communicate.

The negotiator and the processors never send each other messages. They exchange values through the *nodes* of the
registry. A node is a value with a path, like a small file. The negotiator writes the *master state* into the node
`master`, and each processor watches this node. A processor, for example `count-0`, writes its *report* into its own
node `living/count-0`, and the negotiator watches the reports. The master state and each report are complete values. A
reader that missed earlier values therefore needs only the newest value.

The registry can contain old reports. For example, the negotiator asks all spouts to pause, and finds a report
that a slow spout wrote for the previous pause. Each master state therefore has a number. A report contains the
number of the newest master state that the processor has read. The negotiator ignores reports with an older number.

A topology takes a snapshot in several phases. The negotiator begins each phase when it writes the phase into the
master state. In three of the phases, it then waits for reports.

For example, the spout `tags-0` reads the only partition, and the bolt `count-0` processes the tuples. The snapshot
covers offsets 0 to 6, so its clock C contains the next offset, 7:
    phase              what happens
    Flowing(None)      the topology processes records
    SpoutsPaused       tags-0 pauses, and reports that its next offset is 7
    SpoutsPaused(C)    count-0 begins the snapshot, and reports this; only tuples from offsets 0 to 6 enter it
    Flowing(C)         tags-0 reads again; count-0 stores its snapshot at C, and reports this
    Flowing(None)      the snapshot is complete: the negotiator writes C into `completed` of the master state

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
    """A phase of a topology: for example, the spouts read records, or they pause for a snapshot.

    In the phases "SpoutsPaused(clock)" and "Flowing(clock)", the clock of the snapshot in progress is known. It
    contains one offset for each partition. The snapshot covers the records below these offsets.
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
    """The newest decision of the negotiator, which controls the phases of the topology.

    A *spout* is a processor that reads a partition. A *clock* contains one offset for each partition. A snapshot
    covers the records below the offsets of its clock.

    epoch        the number of the epoch; each start and each recovery of the topology begins a new epoch
    number       the number of this master state within its epoch, beginning with 0
    clock        in the phase SPOUTS_REWIND (a start or a recovery): the offsets at which the spouts begin to read
                 in the phases SPOUTS_PAUSED_AT and FLOWING_TO: the clock of the snapshot in progress
    snapshot     in the phase SPOUTS_REWIND: the clock of the snapshot to restore, or None if no snapshot exists
    completed    the clock of the newest snapshot that all processors have saved, or None
    ending       True if the topology ends after the snapshot in progress: the spouts stay paused until the end
    error        the error that ended the topology, or None
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
    """A processor's report to the negotiator. The processor writes it into the registry.

    A *spout* is a processor that reads a partition. A *clock* contains one offset for each partition. A
    snapshot covers the records below the offsets of its clock.

    All processors use these fields:

    epoch        the epoch (the start of the topology) in which the processor takes part, or 0
    seen         the number of the negotiator's newest decision that the processor has read
    address      (host, port) to which other processes send tuples, or None if all processors run in one process
    saved        in the phase INITIALIZE: the clocks of the processor's intact snapshots
    is_ready     whether the processor has restored its snapshot (if one exists) and can process tuples
    split        the clock of the newest snapshot that the processor has begun, or None
    stored       the clock of the newest snapshot that the processor has saved or restored in this epoch, or None
    not_saved    (clock, reason) of a snapshot that the processor could not save, or None
    failure      the reason why the processor cannot continue, even after a restart, or None
    figures      counts and sizes that the user sees

    Only spouts use these fields:

    start        in the phase INITIALIZE: the offset where the spout begins if no snapshot exists
    position     the next offset that a paused spout will read, or None if the spout is not paused
    is_at_end    whether the spout has read its whole partition of a bounded topic
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
    """Return a copy of a value, with lists instead of clocks. The codec can store lists, but no clocks."""
    if isinstance(value, Clock):
        return value.to_value()
    if isinstance(value, dict):
        return {key: _encoded(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(map(_encoded, value))
    return value


def _clock(value: Any) -> Clock | None:
    return None if value is None else Clock.from_value(value)
