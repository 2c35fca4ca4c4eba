"""The conditions of the negotiator's events. For each event, one function decides whether the event has occurred.

The negotiator must decide correctly even if it has missed messages. So a condition depends only on the present values
of the master state, the registry and the time. It never depends on messages or their order. A negotiator that has just
been elected makes the same decision as one that has seen every change of the registry.

In several phases of a restart or a snapshot, the negotiator waits for answers from processors. The setting
`patience` limits each wait, by default to 30 seconds. If an answer is still missing after this time, the
negotiator restarts the topology from the newest snapshot that every processor has saved.

One phase has no time limit: when a topology starts or restarts, the negotiator waits until all processors have
registered.

The time `patience` must not be too short. A bolt saves its part of a snapshot only after it has processed all
tuples that belong to the snapshot. If many tuples wait in front of the bolt, this can take longer than
`patience`. The negotiator then restarts the topology before the snapshot is saved. After the restart, the
spouts send the same tuples again, and the bolt can be too slow again. The topology can restart forever in this
way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from hmb.client import TopicPartition
from hmb.defaults import GRACE_PERIOD
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.master import MasterPhase, MasterState, Report
from hmb.hailstorm.negotiator.steps import NegotiatorEvent

Answer = Callable[[MasterState, Report], bool]


@dataclass(frozen=True)
class NegotiatorSettings:
    """The settings of the negotiator, which decides when a topology takes a snapshot and when it restarts.

    grace_period   the time (s) between two snapshots. If it is None, the topology takes one snapshot, at its end.
    patience       the longest time (s) that the negotiator waits for the processors in one phase
    """

    grace_period: float | None = GRACE_PERIOD
    patience: float = 30.0


class RegistryView(NamedTuple):
    """The input for the negotiator's next decision: the reports in the registry, the time, and two flags."""

    living: Mapping[str, Report]  # name of a processor -> its report
    now: float  # the present time in seconds, from a clock that never goes back
    is_elected: bool = True  # whether this negotiator owns the master node
    stop_requested: bool = False


@dataclass
class Situation:
    """The registry, the present phase and the time, as the negotiator sees them before a step."""

    state: MasterState
    view: RegistryView
    settings: NegotiatorSettings
    spouts: Mapping[TopicPartition, str]  # partition -> the name of the spout processor that reads it
    savers: Iterable[str]  # the names of the processors that save snapshots
    everyone: Iterable[str]  # the names of all processors
    since: float  # the time (s) at which the present phase began
    stale: str | None = None  # why the snapshot store refused this epoch; None if the store accepts the epoch

    def report(self, name: str) -> Report:
        """Return the processor's report of the present epoch.

        If the processor has not written a report in this epoch, return an empty report.
        """
        report = self.view.living.get(name)
        return report if report is not None and report.epoch == self.state.epoch else Report()

    def waits_for(self) -> list[str]:
        """Return the names of the processors that the negotiator waits for. Its phase ends when all have answered."""
        if self.state.phase not in ANSWERS:
            return []
        who, is_answer = ANSWERS[self.state.phase]
        return [name for name in who(self) if not self._has_answered(self.report(name), is_answer)]

    def _has_answered(self, report: Report, is_answer: Answer) -> bool:
        return report.seen == self.state.number and is_answer(self.state, report)

    @property
    def has_all_answers(self) -> bool:
        return not self.waits_for()

    def lost(self) -> list[str]:
        """Return the names of the processors whose report in the registry is missing, or is from an older epoch."""
        return [name for name in self.everyone if self.report(name).epoch == 0]

    def failures(self) -> list[str]:
        """Return the errors that processors have reported in the present epoch."""
        return [failure for name in self.everyone if (failure := self.report(name).failure)]

    def not_saved(self) -> list[str]:
        """Return the errors of the processors that could not save their state for the snapshot in progress."""
        clock = self.state.clock
        pairs = [self.report(name).not_saved for name in self.savers]
        return [why for saved_at, why in filter(None, pairs) if saved_at == clock]

    def newest_common(self) -> Clock | None:
        """Return the clock of the newest snapshot saved by all processors, or None if no such snapshot exists.

        Processors that save no snapshots do not count. All others report their snapshots only in the phase INITIALIZE.
        """
        saved = [set(self.report(name).saved) for name in self.savers]
        return max(set.intersection(*saved), key=_age, default=None) if saved else None

    def missing_snapshot(self) -> str | None:
        """Return an error message if a lost snapshot prevents a restart of the topology, else None.

        The topology restarts from its newest complete snapshot, or from a newer snapshot that all processors have
        saved. After a restart from an older snapshot, sinks could write some outputs a second time.
        """
        completed, newest = self.state.completed, self.newest_common()
        if completed is None or (newest is not None and _age(newest) >= _age(completed)):
            return None
        missing = ", ".join(name for name in self.savers if completed not in self.report(name).saved)
        return (
            f"no intact snapshot of {missing} at the complete clock {completed}: restore the snapshot store from "
            "a copy, or start with an empty store, which reads the topics from their beginning"
        )


def _age(clock: Clock) -> tuple[int, int]:
    """Return a sort key of a clock: of two clocks, the newer one has the larger key.

    A clock maps each partition to an offset. From one snapshot to the next, offsets never decrease, and partitions
    are never removed. The newer clock therefore has more partitions or a larger sum of offsets.
    """
    return len(clock), sum(clock.values())


# In each of these phases, the negotiator waits for reports from processors (instances of spouts, bolts and sinks). The
# first function returns the processors that must answer. The second function checks whether a report is the answer.
ANSWERS: dict[MasterPhase, tuple[Callable[[Situation], Iterable[str]], Answer]] = {
    MasterPhase.INITIALIZE: (lambda it: it.everyone, lambda state, report: report.epoch > 0),
    MasterPhase.SPOUTS_REWIND: (lambda it: it.everyone, lambda state, report: report.is_ready),
    MasterPhase.SPOUTS_PAUSED: (lambda it: it.spouts.values(), lambda state, report: report.position is not None),
    MasterPhase.SPOUTS_PAUSED_AT: (lambda it: it.savers, lambda state, report: report.split == state.clock),
    MasterPhase.FLOWING_TO: (lambda it: it.savers, lambda state, report: report.stored == state.clock),
}


def _is_silent(it: Situation) -> bool:
    return it.view.now - it.since > it.settings.patience and not it.has_all_answers


def _should_stop(it: Situation) -> bool:
    return it.view.stop_requested or all(it.report(name).is_at_end for name in it.spouts.values())


def _is_grace_over(it: Situation) -> bool:
    grace = it.settings.grace_period
    return grace is not None and it.view.now - it.since >= grace


_E = NegotiatorEvent
CONDITIONS: dict[NegotiatorEvent, Callable[[Situation], bool]] = {
    _E.ELECTED: lambda it: it.view.is_elected,
    _E.SESSION_LOST: lambda it: not it.view.is_elected,
    _E.PROCESSOR_FAILED: lambda it: bool(it.failures()),
    _E.EPOCH_STALE: lambda it: it.stale is not None,
    _E.PROCESSOR_LOST: lambda it: bool(it.lost()),
    _E.PROCESSOR_SILENT: _is_silent,
    _E.STOP_REQUESTED: _should_stop,
    _E.SNAPSHOT_MISSING: lambda it: it.has_all_answers and it.missing_snapshot() is not None,
    _E.ALL_REGISTERED: lambda it: it.has_all_answers,
    _E.ALL_READY: lambda it: it.has_all_answers,
    _E.GRACE_OVER: _is_grace_over,
    _E.ALL_PAUSED: lambda it: it.has_all_answers,
    _E.ALL_SPLIT: lambda it: it.has_all_answers,
    _E.LAST_SAVED: lambda it: it.state.ending and it.has_all_answers,
    _E.ALL_SAVED: lambda it: it.has_all_answers,
    _E.LAST_NOT_SAVED: lambda it: it.state.ending and bool(it.not_saved()),
    _E.NOT_SAVED: lambda it: bool(it.not_saved()),
}
