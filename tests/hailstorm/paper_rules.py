"""Bolts and sinks that follow faulty rules of the Hailstorm paper. Hailstorm itself uses other rules.

The tests run a topology with the faulty rules in a simulation. The simulation must detect wrong results.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from hmb.hailstorm.master import MasterPhase, MasterState
from hmb.hailstorm.negotiator import STEPS, NegotiatorEvent, Step
from hmb.hailstorm.payload import Payloads
from hmb.hailstorm.processors.bolts import BoltMachine, SaveRequest
from hmb.hailstorm.processors.sinks import SinkMachine


def steps_without_waiting_for_the_split() -> tuple[Step, ...]:
    """Return the negotiator's steps according to a faulty rule of the Hailstorm paper: the spouts resume too early.

    With these steps, the spouts read again before all bolts have begun their parts of the snapshot.
    """
    kept = [step for step in STEPS if MasterPhase.SPOUTS_PAUSED_AT not in (step.before, step.after)]
    paused = next(step for step in STEPS if step.event is NegotiatorEvent.ALL_PAUSED)
    return (*kept, paused._replace(after=MasterPhase.FLOWING_TO))


class BoltThatSplitsWhenFlowing(BoltMachine):
    """A bolt that begins its part of a snapshot only after the spouts have resumed, as in the Hailstorm paper."""

    def observe(self, master: MasterState) -> None:
        self.report.seen = master.number
        if master.phase is not MasterPhase.FLOWING_TO:
            self._end_round()
        elif master.clock != self.report.split:
            self._desired = master.clock
            self._split()


class SinkThatSplitsWhenFlowing(SinkMachine):
    """A sink that begins its part of a snapshot only after the spouts have resumed, as in the Hailstorm paper."""

    def observe(self, master: MasterState) -> None:
        if master.completed is not None:
            self._write_up_to(master.completed)
        self.report.seen = master.number
        if master.phase is MasterPhase.FLOWING_TO and master.clock != self.report.split:
            self.report.split = self._desired = master.clock
            self._save_if_eligible()


class BoltThatMergesAtOnce(BoltMachine):
    """A bolt that sends outputs before its part of a snapshot is complete.

    During a snapshot, a bolt has two states: A for the snapshot's tuples, and B for later tuples. This bolt merges
    later tuples into B and sends their outputs at once, although A is not complete.
    """

    # True if the bolt computes the outputs for the snapshot's tuples from A + B, as in the Hailstorm paper.
    below_from_both = False

    def _split(self) -> None:
        super()._split()
        self._waits_at = None
        if self.state.is_gathering:
            self.state.freeze()

    def _save_if_eligible(self) -> None:
        clock = self.state.clock
        if clock is not None and not self._is_saving and self.marks.clock.has_reached(clock):
            if self.state.is_gathering:
                self.state.freeze()
            self._is_saving, self.save = True, SaveRequest(clock, self.state)

    def _process(self, payloads: Payloads) -> list[Any]:
        state, results = self.state, list[Any]()
        if state.clock is None or state.b is None:
            return super()._process(payloads)
        boundary = bisect_left(payloads.offsets, state.clock[payloads.partition])
        other = state.b if self.below_from_both else None
        state.a, _ = self._apply(payloads.tuples[:boundary], state.a, other, results)
        state.b, _ = self._apply(payloads.tuples[boundary:], state.b, state.a, results)
        return results


class BoltOfThePaper(BoltThatMergesAtOnce):
    """A bolt that computes each output from both of its states, A and B, as in the Hailstorm paper.

    During a snapshot, a bolt merges the snapshot's tuples into the state A, and later tuples into the state B.
    """

    below_from_both = True
