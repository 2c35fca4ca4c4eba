"""A clock that a test moves forward: an hour passes in milliseconds.

A test of retention, of a transaction's timeout or of expired offsets cannot wait for hours. `ManualClock` is the clock
of an embedded broker, and `advance` moves it::

    clock = ManualClock()
    with hmb.Broker(clock=clock) as broker:
        ...
        clock.advance(hours=1)

The clock runs on in real time between two calls of `advance`. Therefore nothing in the broker stops while the test
does not move the clock.

`advance` moves the time in steps, because one thing that becomes due can make another thing due. For example, the
members of a group expire after 45 s. The group is then empty, and its offsets expire 7 days later. One call of
`advance(days=8, expire_members=True)` shows both::

    0 s            advance begins
    45 s           the timer of the groups expires the members
    7 d 45 s       the offsets' retention ends; the next periodic check deletes them
    8 d            each periodic task runs once more, and advance returns

A step ends at the next deadline of a transaction or of a group member, or at the next run of a periodic task. The tasks
run in the thread that calls `advance`. When `advance` returns, everything that became due is done.

In a long advance a task does not run in each of its intervals, because one year contains three million intervals of 10
seconds. The task then waits for one twentieth of the remaining time, which becomes shorter with each run. So an advance
of one year has about 250 runs of this task. The runs are rare at first, and have their usual interval at the end.

Group members send heartbeats in real time. If the clock moved their deadlines, a member that is alive would lose its
session. Therefore their deadlines (session, rebalance, initial delay, revocation) run in real time, and only
`expire_members=True` moves them, too. All members then expire, and clients that are alive join again.

The module hmb/storage/clock.py lists what uses the clock. The wait of a fetch and the timeouts of requests and of
connections always run in real time, so no client hangs.

A limit: producers set the timestamps of their records by the real time. After `advance(days=8)` a new record looks 8
days old, and the default retention deletes it. Topics with `message.timestamp.type=LogAppendTime` use the clock.
"""

from __future__ import annotations

import heapq
import threading
from datetime import timedelta
from typing import NamedTuple

from hmb.broker.broker import BrokerServer
from hmb.broker.housekeeping import Housekeeper, Task
from hmb.storage import clock
from hmb.storage.clock import BrokerClock
from hmb.units import now_ms

PARTS = 20  # a task waits at most for this part of the remaining time
MS = timedelta(milliseconds=1)


class _TaskRun(NamedTuple):
    """The next run of a periodic task: `at` and `interval` in ms. `at` counts from the start of the advance."""

    at: int
    number: int  # the order of the tasks that run at the same time
    interval: int
    housekeeper: Housekeeper
    task: Task


class ManualClock:
    """The time of the system plus the time by which a test has moved it forward. Several brokers can share a clock."""

    def __init__(self) -> None:
        self._moved = self._members_moved = 0  # ms
        self._servers: list[BrokerServer] = []
        self._advancing = threading.Lock()  # One advance runs at a time.
        self.functions = BrokerClock(self.now_ms, self.monotonic_ms)

    def now_ms(self) -> int:
        """Return the time of the clock in ms since 1970."""
        return now_ms() + self._moved

    def monotonic_ms(self) -> int:
        """Return the time (ms) with which the coordinator compares the deadlines of group members."""
        return clock.monotonic_ms() + self._members_moved

    @property
    def has_moved(self) -> bool:
        """Whether the clock differs from the time of the system."""
        return self._moved > 0

    def restore_real_time(self) -> None:
        """Return to the time of the system. Only a broker without data accepts that its time moves back.

        The plugin calls this method after `Broker.reset`. The deadlines of group members do not move back.
        """
        with self._advancing:
            self._moved = 0

    def attach(self, server: BrokerServer) -> None:
        """Run the periodic tasks of a started broker when the clock moves."""
        self._servers.append(server)

    def detach(self, server: BrokerServer) -> None:
        """Forget a broker. A broker that is not attached is ignored."""
        if server in self._servers:
            self._servers.remove(server)

    def advance(
        self,
        by: timedelta = timedelta(),
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        milliseconds: float = 0,
        expire_members: bool = False,
    ) -> None:
        """Move the clock forward by the sum of the arguments. Return when everything that became due is done.

        `expire_members` also moves the deadlines of group members. Raises ValueError for less than 1 ms, and for a time
        that a timedelta cannot contain.
        """
        try:
            by += timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds)
        except OverflowError as error:
            raise ValueError(f"a clock advances by at most {timedelta.max.days} days") from error
        if by < MS:
            why = f"it cannot advance by {by.total_seconds():g} s"
            raise ValueError(f"a clock only moves forward, by at least 1 ms; {why}")
        with self._advancing:
            self._advance(by // MS, expire_members=expire_members)

    def _advance(self, length: int, *, expire_members: bool) -> None:
        runs = self._runs(length)
        passed = 0
        while passed < length:
            next_run = runs[0].at if runs else length
            step = min(next_run - passed, length - passed, *self._times_to_deadlines(with_members=expire_members))
            self._moved += step
            self._members_moved += step if expire_members else 0
            passed += step
            self._meet_deadlines()
            while runs and runs[0].at <= passed:
                run = runs[0]
                heapq.heapreplace(runs, run._replace(at=passed + _pause(run.interval, length - passed)))
                run.housekeeper.run(run.task)
        for run in sorted(runs, key=lambda each: each.number):
            run.housekeeper.run(run.task)

    def _runs(self, length: int) -> list[_TaskRun]:
        """Return a heap with the first run of each periodic task in an advance by `length` ms."""
        runs: list[_TaskRun] = []
        for housekeeper in (each for server in self._servers for each in server.housekeepers):
            for seconds, task in housekeeper.tasks:
                interval = max(1, round(seconds() * 1000))
                runs.append(_TaskRun(_pause(interval, length), len(runs), interval, housekeeper, task))
        heapq.heapify(runs)
        return runs

    def _times_to_deadlines(self, *, with_members: bool) -> list[int]:
        """Return the times (ms) to the next deadlines of transactions and, with members, of groups.

        Deadlines that have passed are left out. The housekeepers retry what a passed deadline has left undone.
        """
        times: list[int] = []
        for context in [server.context for server in self._servers]:
            if (deadline := context.transactions.next_deadline()) is not None:
                times.append(deadline - self.now_ms())
            if with_members and (deadline := context.groups.timer.next_deadline()) is not None:
                times.append(deadline - self.monotonic_ms())
        return [each for each in times if each > 0]

    def _meet_deadlines(self) -> None:
        """Expire members and abort transactions whose deadlines have passed, and wait until this is done."""
        for server in list(self._servers):
            server.context.groups.timer.wait_until_idle()
            transactions = server.context.transactions
            deadline = transactions.next_deadline()
            if deadline is not None and deadline <= self.now_ms():
                server.housekeepers[0].run(transactions.abort_late)


def _pause(interval: int, left: int) -> int:
    """Return the time (ms) to the next run of a task, if `left` ms of the advance are left."""
    return max(interval, left // PARTS)
