"""Tests of the timer's thread, with a clock that a test sets."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator

import pytest

from hmb.coordinator.group_timer import GroupTimer


class TimedGroup:
    """A group that puts its name into a queue when the timer wakes it."""

    def __init__(self, name: str, woken: queue.Queue[str]) -> None:
        self.name, self.woken = name, woken
        self.due: int | None = None

    def wake(self) -> None:
        self.woken.put(self.name)
        if self.name == "broken":
            raise ValueError("a fault of ours")


@pytest.fixture
def woken() -> queue.Queue[str]:
    return queue.Queue()


@pytest.fixture
def timer() -> Iterator[GroupTimer]:
    timer = GroupTimer(clock=lambda: 1_000)
    yield timer
    timer.stop()
    timer.thread.join(30)
    assert not timer.thread.is_alive()


def test_due_groups_are_woken_in_order_and_no_others(timer: GroupTimer, woken: queue.Queue[str]) -> None:
    for name, deadline in {"late": 1_000, "never": 1_000_000_000, "early": 10, "no wish": None}.items():
        timer.schedule(TimedGroup(name, woken), deadline)
    timer.start()
    assert [woken.get(timeout=30), woken.get(timeout=30)] == ["early", "late"]
    timer.schedule(TimedGroup("added", woken), 0)
    assert woken.get(timeout=30) == "added"
    assert woken.empty()


def test_a_group_with_two_deadlines_is_woken_once_at_the_earlier_one(
    timer: GroupTimer, woken: queue.Queue[str]
) -> None:
    group = TimedGroup("s", woken)
    for deadline in (900, 950, 100, 500):
        timer.schedule(group, deadline)
    assert group.due == 100
    timer.start()
    timer.schedule(TimedGroup("last", woken), 1_000)
    assert [woken.get(timeout=30), woken.get(timeout=30)] == ["s", "last"]
    assert group.due is None


def test_an_error_in_one_group_does_not_stop_the_deadlines_of_the_others(
    timer: GroupTimer, woken: queue.Queue[str], caplog: pytest.LogCaptureFixture
) -> None:
    timer.schedule(TimedGroup("broken", woken), 1)
    timer.schedule(TimedGroup("sound", woken), 2)
    timer.start()
    assert [woken.get(timeout=30), woken.get(timeout=30)] == ["broken", "sound"]
    assert "a fault of ours" in caplog.text


def test_a_deadline_in_weeks_does_not_fail(timer: GroupTimer, woken: queue.Queue[str]) -> None:
    """The timer accepts a deadline that is 2^62 ms away.

    A lock accepts a time limit of at most 2^63 ns (292 years), so the timer must not wait for the whole time at once.
    """
    timer.schedule(TimedGroup("weeks", woken), 2**62)
    timer.start()
    timer.schedule(TimedGroup("now", woken), 0)
    assert woken.get(timeout=30) == "now"


def test_wait_until_idle_returns_after_all_groups_that_are_due_were_woken(woken: queue.Queue[str]) -> None:
    class Slow(TimedGroup):
        def wake(self) -> None:
            time.sleep(0.05)
            super().wake()

    now = [0]
    timer = GroupTimer(clock=lambda: now[0])
    timer.start()
    for name, deadline in {"first": 1_000_000, "second": 2_000_000, "not due": 9_000_000}.items():
        timer.schedule(Slow(name, woken), deadline)
    timer.wait_until_idle()
    assert woken.empty()
    assert timer.next_deadline() == 1_000_000
    now[0] = 2_000_000
    timer.wait_until_idle()
    assert [woken.get_nowait(), woken.get_nowait()] == ["first", "second"]
    assert woken.empty()
    timer.stop()
    timer.wait_until_idle()  # After the timer has stopped, this call returns immediately.
    timer.thread.join(30)
