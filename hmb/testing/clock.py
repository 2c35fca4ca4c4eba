"""A broker's clock that a test can move forward, for example by one hour within a few milliseconds.

A test of retention, of a transaction's timeout or of expired offsets cannot wait for hours. Therefore an embedded
broker accepts a `ManualClock`. The method `advance` moves this clock forward:
    clock = ManualClock()
    with hmb.Broker(clock=clock) as broker:
        ...
        clock.advance(hours=1)

Between two calls of `advance`, a `ManualClock` runs at the speed of real time. The broker therefore works as usual
while a test does not move the clock.

`advance` moves the clock in several steps, because one event can be the condition for a later event. For
example, the offsets of a group expire 7 days after the group has become empty. The group becomes empty when its
last member expires, after 45 s without a heartbeat. One call of `advance(days=8, expire_members=True)` waits
for both events:
    0 s            advance begins
    45 s           the coordinator removes the members, so the group is empty
    7 d 45 s       the offsets expire; the next periodic check deletes them
    8 d            each periodic task runs once more, and advance returns

Each step of `advance` ends at the next moment at which the broker has something to do:
- A transaction reaches its timeout.
- The broker must run a periodic task.
- A group member reaches its deadline. This ends a step only with `expire_members=True`.

After each step, the broker does the work that is due. The thread that has called `advance` runs the periodic
tasks. After the last step, `advance` returns.

Some periodic tasks run every 10 seconds. In one year, such a task would run three million times. So while
`advance` moves the clock, the task waits longer: one twentieth of the remaining time, but at least 10 seconds.
If `advance` moves the clock by one year, the first wait is 18 days, and the last waits are 10 seconds. The task
runs only about 250 times.

Clients send heartbeats in real time, for example every 3 seconds. The deadlines of group members therefore
follow the real time. If `advance(hours=1)` also moved the clock for these deadlines, all members would seem to
have sent no heartbeat for an hour.

A call of `advance` affects the deadlines of group members only with `expire_members=True`. The broker then
removes members whose deadlines have passed. Running clients join their groups again.

The module hmb/storage/clock.py lists the parts of the broker that use a test's clock. Three time limits always
use the real time: how long a Fetch request waits for records, and the timeouts of requests and of connections.
If these limits used the test's clock, a call of `advance` would end the waits too early and close the
connections of clients.

A `ManualClock` does not change the clock of producers. A producer writes the real time into its records, but
the broker uses the moved clock. After `advance(days=8)`, a producer's new record seems to be 8 days old. With
the default retention of 7 days, the broker deletes the record.

In topics with `message.timestamp.type=LogAppendTime`, new records get their timestamps from the `ManualClock`.
Retention uses the same clock, so it keeps these records.
"""

from __future__ import annotations

import heapq
import threading
from datetime import timedelta
from typing import NamedTuple

from hmb.broker.housekeeping import Housekeeper, Task
from hmb.broker.lifecycle import BrokerServer
from hmb.storage import clock
from hmb.storage.clock import BrokerClock
from hmb.units import now_ms

# While `advance` moves the clock, a periodic task waits for the remaining time divided by PARTS, but at least for its
# interval (see `_pause`).
PARTS = 20
MS = timedelta(milliseconds=1)


class _TaskRun(NamedTuple):
    """A planned run of a periodic task. `advance` runs the task when the clock reaches the planned time."""

    at: int  # The task runs when `advance` has moved the clock by this number of ms.
    number: int  # If two tasks run at the same time, the task with the lower number runs first.
    interval: int  # the usual time between two runs of the task, in ms
    housekeeper: Housekeeper
    task: Task


class ManualClock:
    """A clock that runs in real time. A test can move it forward with `advance`.

    Several brokers can share one clock.
    """

    def __init__(self) -> None:
        self._moved = self._members_moved = 0  # ms
        self._servers: list[BrokerServer] = []
        self._advancing = threading.Lock()  # held during an advance, because only one may run at a time
        self.functions = BrokerClock(self.now_ms, self.monotonic_ms)

    def now_ms(self) -> int:
        """Return the time that the clock shows, in ms since 1970."""
        return now_ms() + self._moved

    def monotonic_ms(self) -> int:
        """Return the time (ms) that the coordinator compares with the deadlines of members.

        Only differences of such times have a meaning.
        """
        return clock.monotonic_ms() + self._members_moved

    @property
    def has_moved(self) -> bool:
        """Whether the clock shows a later time than the system's clock."""
        return self._moved > 0

    def restore_real_time(self) -> None:
        """Set the clock back to the system's time. The broker must have no topics and no groups at this moment.

        If the broker still had records, their timestamps could be in the future after this call. So the pytest plugin
        first calls `Broker.reset`, which deletes all topics and groups.

        The method does not change the time that `monotonic_ms` returns, because this time must never decrease.
        """
        with self._advancing:
            self._moved = 0

    def attach(self, server: BrokerServer) -> None:
        """Connect a started broker to this clock. From now on, `advance` runs the periodic tasks of this broker."""
        self._servers.append(server)

    def detach(self, server: BrokerServer) -> None:
        """Disconnect a broker, so that `advance` no longer runs its tasks. An unknown broker is ignored."""
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
        """Move the clock forward by the sum of the given durations, do all due work, and then return.

        For example, `advance(hours=1)` moves the clock by one hour. By default, the deadlines of group members follow
        the real time. If `expire_members` is true, they follow this clock, so members can expire.

        Raises ValueError if the sum is below 1 ms, or too large for a `timedelta`. Raises TypeError for a number
        without a unit, such as `advance(1)`.
        """
        if not isinstance(by, timedelta):
            raise TypeError(f"advance({by!r}): give the unit, such as advance(hours=1), or pass a timedelta")
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
        """Return a heap with the first planned run of each periodic task, for an `advance` by `length` ms."""
        runs: list[_TaskRun] = []
        for housekeeper in (each for server in self._servers for each in server.housekeepers):
            for seconds, task in housekeeper.tasks:
                interval = max(1, round(seconds() * 1000))
                runs.append(_TaskRun(_pause(interval, length), len(runs), interval, housekeeper, task))
        heapq.heapify(runs)
        return runs

    def _times_to_deadlines(self, *, with_members: bool) -> list[int]:
        """Return how long (ms) it is until the next deadlines of the brokers that use this clock.

        For each broker, the list contains the time until the next timeout of a transaction. If `with_members` is true,
        it also contains the time until the next deadline of a group.

        The list leaves out deadlines that have passed. For example, a transaction's deadline has passed, but the broker
        could not abort the transaction. `advance` need not wait for this deadline, because a periodic task tries again.
        """
        times: list[int] = []
        for context in [server.context for server in self._servers]:
            if (deadline := context.transactions.next_deadline()) is not None:
                times.append(deadline - self.now_ms())
            if with_members and (deadline := context.groups.timer.next_deadline()) is not None:
                times.append(deadline - self.monotonic_ms())
        return [each for each in times if each > 0]

    def _meet_deadlines(self) -> None:
        """For each passed deadline, remove the group member or abort the transaction. Wait until the work is done."""
        for server in list(self._servers):
            server.context.groups.timer.wait_until_idle()
            transactions = server.context.transactions
            deadline = transactions.next_deadline()
            if deadline is not None and deadline <= self.now_ms():
                server.housekeepers[0].run(transactions.abort_timed_out)


def _pause(interval: int, left: int) -> int:
    """Return how long (ms) a periodic task waits for its next run, while `advance` moves the clock.

    The clock must still move by `left` ms. The result is `left // PARTS`, but at least the usual `interval`. For
    example, if 40 hours are left, a task with an interval of 10 s waits for 40 / 20 = 2 hours.
    """
    return max(interval, left // PARTS)
