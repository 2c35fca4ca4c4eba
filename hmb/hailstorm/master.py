"""The master state and the reports: the values through which the negotiator and the processors communicate.

The negotiator and the processors never send each other messages. The negotiator writes one value, the *master state*,
into the registry, and each processor watches it. Each processor writes one value, its *report*, into its own entry
below `living`, and the negotiator watches the reports. The master state and each report are complete values: a reader
that missed earlier values needs only the newest one.

A report is an answer to one master state. It counts only if the processor has seen the current master state. Otherwise
a slow spout could still report the position of its last pause, although it is about to read further.

    negotiator   writes  master             reads   living/*
    count-0      writes  living/count-0     reads   master

This example shows how the values change in one round of the snapshot protocol. C is the clock (tags-0: 7):

    master                         living/tags-0        living/count-0
    Flowing(None)
    SpoutsPaused                   position 7
    SpoutsPaused(C)                                     split at C
    Flowing(C)                     position None        stored C
    Flowing(None), completed C

Every value carries the epoch in which it was written. Values of an older epoch are refused.

Source: Hailstorm, chapter 3.2, "Apache Zookeeper", and chapter 3.6, "Negotiator".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hmb.hailstorm.clock import Clock


class MasterPhase(Enum):
    """The phases in which the negotiator leads a topology, with the paper's names.

    A phase in parentheses has a clock.
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
    """The phase of the topology, its clock and its epoch.

    The negotiator writes them to the registry's node `master`.

    epoch        the number of this start of the topology; each recovery begins a new epoch
    number       the number of this value in its epoch, from 0
    clock        SpoutsRewind: the clock to which the spouts rewind;
                 SpoutsPaused(clock) and Flowing(clock): the desired snapshot clock
    snapshot     SpoutsRewind: the clock of the snapshots to restore; None if all states begin empty
    completed    the newest clock at which every processor has saved its state
    ending       whether the snapshot in progress is the last one: the spouts stay paused
    error        Ended: the error that ended the topology, or None
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

    epoch        the epoch of the master state that the processor follows; 0 before it has seen one
    seen         the number of the newest master state that the processor has seen; the report answers this state
    address      (host, port) of its listener, where upstream processors of other processes connect; None in one process
    saved        clocks of its snapshots that are intact; filled when it registers
    start        a spout: the offset where it would begin without a snapshot
    is_ready     whether it has restored its snapshot, or rewound
    position     a spout that is paused: the next offset; None while it flows
    is_at_end    a spout that reads a bounded topic: whether it has read all of it
    split        the clock at which its state is split, or was split last
    stored       the clock of the snapshot that it saved last in this epoch
    not_saved    the clock of a snapshot that it could not save, and why
    failure      the reason why it cannot continue, which a restart would not remove
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
    """Return a value in which lists, which the codec can store, replace all clocks."""
    if isinstance(value, Clock):
        return value.to_value()
    if isinstance(value, dict):
        return {key: _encoded(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(map(_encoded, value))
    return value


def _clock(value: Any) -> Clock | None:
    return None if value is None else Clock.from_value(value)
