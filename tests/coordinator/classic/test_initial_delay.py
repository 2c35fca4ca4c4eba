"""Tests of the initial rebalance delay of a classic group, with the numbers in the docstring of `initial_delay`."""

from __future__ import annotations

from hmb.coordinator.classic.initial_delay import InitialDelay


def test_a_member_that_joins_extends_the_delay_up_to_the_rebalance_timeout() -> None:
    delay = InitialDelay(3_000)
    deadlines: list[int | None] = [delay.start(10_000, now=0)]
    while (deadline := deadlines[-1]) is not None:
        delay.on_join()
        deadlines.append(delay.extend(deadline))
    assert deadlines == [3_000, 6_000, 9_000, 10_000, None]


def test_a_delay_without_a_new_member_is_not_extended() -> None:
    delay = InitialDelay(3_000)
    delay.on_join()
    assert delay.start(10_000, now=0) == 3_000
    assert delay.extend(3_000) is None
