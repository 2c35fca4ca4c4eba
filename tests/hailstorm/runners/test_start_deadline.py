"""Tests of the time limit for the start of workers. When the runner replaces slow workers, it doubles the limit.

The tests pass the time as an argument, so they do not depend on the speed of the machine.
"""

from __future__ import annotations

import pytest

from hmb.hailstorm.master import MasterPhase, MasterState
from hmb.hailstorm.runners.start_deadline import LONGEST_LIMIT, StartDeadline

OTHER_PHASES = [MasterState(phase, 1) for phase in MasterPhase if phase is not MasterPhase.INITIALIZE]


def initialize(epoch: int = 1) -> MasterState:
    return MasterState(MasterPhase.INITIALIZE, epoch)


def replacements(deadline: StartDeadline, master: MasterState, start: int, end: int) -> list[int]:
    """Return the seconds from `start` to `end` (exclusive) at which the runner replaces workers."""
    return [now for now in range(start, end) if deadline.has_passed(master, now)]


def test_each_replacement_doubles_the_limit_up_to_the_longest_limit() -> None:
    times = replacements(StartDeadline(10.0), initialize(), 0, 300)
    waits = [later - earlier - 1 for earlier, later in zip([0, *times], times, strict=False)]
    assert waits == [10, 20, 40, 60, 60, 60]
    assert waits[-1] == LONGEST_LIMIT


@pytest.mark.parametrize("needed", [0.5, 5.0, 50.0])
def test_workers_on_a_slow_machine_register_in_the_end(needed: float) -> None:
    """The time limit for a start grows until slow workers have enough time to register.

    The first limit is 1 s, and slow workers need up to 50 s. The runner replaces workers that exceed the limit. Each
    replacement doubles the limit, up to 60 s.
    """
    deadline, started, now = StartDeadline(1.0), 0.0, 0.0
    while now - started < needed:
        now += 0.25
        assert now < 4 * needed, "the workers are replaced again and again"
        if deadline.has_passed(initialize(), now):
            started = now
    assert deadline.limit >= needed


def test_a_start_timeout_above_the_longest_limit_stays_the_same() -> None:
    deadline = StartDeadline(100.0)
    assert replacements(deadline, initialize(), 0, 300) == [101, 202]
    assert deadline.limit == 100.0


def test_a_new_epoch_restarts_the_wait_but_keeps_the_limit() -> None:
    deadline = StartDeadline(1.0)
    assert replacements(deadline, initialize(1), 0, 6) == [2, 5]
    assert replacements(deadline, initialize(2), 6, 12) == [11]


@pytest.mark.parametrize("master", [None, *OTHER_PHASES], ids=str)
def test_when_the_topology_leaves_initialize_the_limit_is_the_start_timeout_again(master: MasterState | None) -> None:
    deadline = StartDeadline(1.0)
    assert replacements(deadline, initialize(), 0, 6) == [2, 5]
    assert replacements(deadline, master, 6, 100) == []
    assert deadline.limit == 1.0
    assert replacements(deadline, initialize(2), 100, 103) == [102]
