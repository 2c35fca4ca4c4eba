"""Tests of `RestartLimit`, which counts the restarts since the last complete snapshot."""

from __future__ import annotations

from hmb.client import TopicPartition
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.master import MasterPhase, MasterState
from hmb.hailstorm.runners.restarts import RestartLimit

P0 = TopicPartition("words", 0)


def flowing(completed: int | None) -> MasterState:
    clock = None if completed is None else Clock({P0: completed})
    return MasterState(MasterPhase.FLOWING, 1, completed=clock)


def test_the_first_complete_snapshot_is_progress() -> None:
    limit = RestartLimit(2)
    for completed in (None, None, 10, 10):
        limit.note(flowing(completed), "a crash")
        assert limit.problem is None
    limit.note(flowing(10), "another crash")
    assert limit.problem == "3 restarts without progress, most often because a crash"


def test_each_newer_complete_snapshot_is_progress() -> None:
    limit = RestartLimit(1)
    for completed in (10, 20, 30, 40):
        limit.note(flowing(completed), "a crash")
    assert limit.problem is None


def test_a_negotiator_that_starts_again_is_no_progress() -> None:
    """A restart of the negotiator does not set the count of restarts back to 0.

    Only a new complete snapshot sets this count back to 0.
    """
    limit = RestartLimit(2)
    for master in (flowing(10), None, flowing(10)):
        limit.note(master, "a crash")
    assert limit.problem is not None


def test_without_a_limit_there_is_no_problem() -> None:
    limit = RestartLimit(None)
    for _ in range(100):
        limit.note(None, "a crash")
    assert limit.problem is None
