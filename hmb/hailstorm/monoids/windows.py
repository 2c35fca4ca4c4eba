"""Monoids for windows of event time: each window has a state of its own, which contains the values in this window.

The *event time* of a tweet is the time when it was written, in ms since 1970. A topology processes the tweet later, and
after a crash perhaps a second time. For example, a topology counts the tweets with #love in each hour. The counts must
not depend on when the topology processes a tweet, so the hours are hours of event time.

A *window* is an interval of event time, for example one hour. A bolt with windows keeps a separate state for
each window, for example a count. Three types of windows exist. In this example, `duration` is 60 ms, and `step`
is 30 ms:
    Tumbling(duration)         [0, 60) [60, 120) ...                 each time is in one window
    Sliding(duration, step)    [0, 60) [30, 90) [60, 120) ...        each time is in 60 / 30 = 2 windows
    Sessions(gap)              a session ends when no value of its key follows within `gap` ms

A stream does not end, so a bolt's map of windows would grow forever. But a bolt expects no more values with
event times before its *event-time watermark*. When a snapshot begins, the bolt therefore drops the windows that
end at the watermark or earlier (the method `expire`). At the watermark 60 ms, it drops the window [0, 60).

The module `hmb.hailstorm.processors.event_time` explains how a bolt computes its watermark, and how a spout
leaves out most late records.

**Late values.** If a value for a dropped window still arrives, the bolt leaves it out. Otherwise the window would begin
again, for example with the count 1. The next node could then replace the correct count 500 by 1.

With sliding windows, one value belongs to several windows. For example, a value at time 40 belongs to the windows
[0, 60) and [30, 90). If the bolt has dropped only [0, 60), it merges the value into [30, 90). If the bolt has dropped
both windows, it counts the value as late and leaves it out.

Source for the three kinds of windows: Akidau et al., "The Dataflow Model" (2015), chapter 1.3.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property, reduce
from typing import Any, overload

from hmb.hailstorm.monoids.base import Monoid
from hmb.hailstorm.monoids.containers import MapOf

Session = tuple[int, int, Any]  # (first event time in ms, last event time in ms, content of the session)


class WindowsOf(MapOf):
    """The base class of the monoids for windows: `Sliding` and `Sessions`.

    A window is an interval of event time. The *content* of a window summarizes the values in this interval, for
    example as a count. `Sliding` uses a dict: start of the window -> content. `Sessions` uses a dict: key -> list
    of the key's sessions. A bolt can remove old windows from these dicts.
    """

    @abstractmethod
    def expire(self, state: dict[Any, Any], watermark: int) -> dict[Any, Any]:
        """Return the state without the windows that end at or below `watermark`, a time in ms."""

    @property
    @abstractmethod
    def content(self) -> Monoid[Any]:
        """The kind of state that one window contains, for example `MapOf(Sum())` if a window contains a map of sums."""

    @abstractmethod
    def by_window(self, state: dict[Any, Any]) -> dict[Any, Any]:
        """Return the windows of a state as a dict: start (ms) -> content.

        `Sessions` uses (key, first event time, last event time) instead of the start.
        """


class Sliding(WindowsOf):
    """Windows of event time, each `duration` ms long. A new window starts every `step` ms, so windows can overlap.

    A state maps the start of each window (ms) to the content of the window. The parameter `values` is the monoid of
    the contents. For example, with `Sum()` the content of a window is a sum.
    """

    def __init__(self, duration: int, step: int, values: Monoid[Any]) -> None:
        if not duration >= step >= 1:
            raise ValueError(f"windows must have duration >= step >= 1 ms, not duration {duration} and step {step}")
        super().__init__(values)
        self.duration, self.step = duration, step

    def starts(self, time: int) -> Iterable[int]:
        """Return the starts of all windows that contain the event time `time`, the newest start first."""
        return range(time - time % self.step, time - self.duration, -self.step)

    def lift(self, value: Any) -> dict[int, Any]:
        """Return the windows that contain a tuple, as a dict: start of the window (ms) -> content.

        `value` is the pair (event time, value to merge). With `Sliding(60, 30, Sum())`, a window of 60 ms starts
        every 30 ms, so the pair (40, 7) becomes {30: 7, 0: 7}.
        """
        time, content = value
        return {start: self.values.lift(content) for start in self.starts(time)}

    def expire(self, state: dict[int, Any], watermark: int) -> dict[int, Any]:
        return {start: each for start, each in state.items() if start + self.duration > watermark}

    @property
    def content(self) -> Monoid[Any]:
        return self.values

    def by_window(self, state: dict[int, Any]) -> dict[Any, Any]:
        return dict(state)

    def describe(self) -> str:
        return f"{type(self).__name__}({self.duration}, {self.step}, {self.values.describe()})"


class Tumbling(Sliding):
    """Windows of `duration` ms without gaps and without overlap: each window starts where the previous window ends."""

    def __init__(self, duration: int, values: Monoid[Any]) -> None:
        super().__init__(duration, duration, values)

    def describe(self) -> str:
        return f"{type(self).__name__}({self.duration}, {self.values.describe()})"


class SessionList(Monoid[list[Session]]):
    """A monoid whose states are lists. Each list contains the sessions of one key in order of time.

    The method `merge` copies whole lists. A bolt therefore adds each tuple with `absorb`, which changes the
    existing list.

    While a bolt saves its list in a snapshot, this list must not change. The bolt then keeps newer tuples in a
    second list. The method `view` shows both lists as one.

    Invariant: the time between two sessions of a list is at least `gap` ms.
    """

    def __init__(self, gap: int, values: Monoid[Any]) -> None:
        self.gap, self.values = gap, values

    def empty(self) -> list[Session]:
        return []

    def lift(self, value: Any) -> list[Session]:
        """Return a list with one session, which contains only this (time, value) pair."""
        return [(value[0], value[0], self.values.lift(value[1]))]

    def merge(self, a: list[Session], b: list[Session]) -> list[Session]:
        """Return the sessions of both lists. Sessions that are less than `gap` ms apart become one session."""
        joined: list[Session] = []
        for first, last, state in sorted([*a, *b], key=lambda session: session[:2]):
            if joined and first - joined[-1][1] < self.gap:
                begin, end, before = joined[-1]
                joined[-1] = (begin, max(end, last), self.values.merge(before, state))
            else:
                joined.append((first, last, state))
        return joined

    def absorb(self, a: list[Session], b: list[Session]) -> list[Session]:
        for session in b:
            near = near_sessions(a, session[0], session[1], self.gap)
            a[near] = [self.joined([*a[near], session])]
        return a

    def view(self, a: list[Session], b: list[Session]) -> Any:
        return MergedSessions(self, a, b)

    def joined(self, sessions: list[Session]) -> Session:
        """Return one session with the values of all these sessions."""
        state = reduce(self.values.merge, [each for _, _, each in sessions])
        return min(first for first, _, _ in sessions), max(last for _, last, _ in sessions), state

    def result(self, state: list[Session]) -> list[Session]:
        return [(first, last, self.values.result(each)) for first, last, each in state]

    def to_value(self, state: list[Session]) -> Any:
        return [(first, last, self.values.to_value(each)) for first, last, each in state]

    def from_value(self, value: Any) -> list[Session]:
        return [(first, last, self.values.from_value(each)) for first, last, each in value]


class MergedSessions(Sequence[Session]):
    """A read-only list that shows two lists of sessions of one key as if they were merged.

    Usually, `at(time)` merges only the sessions near this time. If no session contains the time, or if a caller
    uses another method, the object merges the two lists. It does this only once.
    """

    def __init__(self, monoid: SessionList, a: list[Session], b: list[Session]) -> None:
        self._monoid, self._a, self._b = monoid, a, b

    @cached_property
    def _merged(self) -> list[Session]:
        return self._monoid.merge(self._a, self._b)

    def at(self, time: int) -> Session:
        """Return the session that contains the event time `time`. Raises KeyError if no session contains it."""
        found = [each for part in (self._a, self._b) for each in part[near_sessions(part, time, time, 1)]]
        if not found:  # Neither list has a session that contains `time`, but the merged list may have one.
            return session_at(self._merged, time)
        while True:
            first, last = min(each[0] for each in found), max(each[1] for each in found)
            gap = self._monoid.gap
            near = [each for part in (self._a, self._b) for each in part[near_sessions(part, first, last, gap)]]
            if len(near) == len(found):
                return self._monoid.joined(near)
            found = near

    @overload
    def __getitem__(self, index: int) -> Session: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Session]: ...

    def __getitem__(self, index: int | slice) -> Session | Sequence[Session]:
        return self._merged[index]

    def __len__(self) -> int:
        return len(self._merged)

    def __eq__(self, other: object) -> bool:
        return self._merged == (other._merged if isinstance(other, MergedSessions) else other)

    __hash__ = None  # type: ignore[assignment]  # A list has no hash, either.

    def __repr__(self) -> str:
        return repr(self._merged)


class Sessions(WindowsOf):
    """Sessions by key: a session ends if its key has no value for `gap` ms.

    A state maps each key to a list of the key's sessions. To add a tuple, a bolt searches this list by bisection,
    so `Sessions` is about as fast as `Tumbling`.

    The *watermark* of a bolt is an event time. The bolt expects no more tuples with earlier event times. When the
    watermark is at least `gap` ms after the end of a session, the session is complete. The bolt drops this session
    at the beginning of the next snapshot.

    A long `allowed_lateness` of a spout delays the watermark. The bolt then keeps each session in memory longer.
    """

    def __init__(self, gap: int, values: Monoid[Any]) -> None:
        if gap < 1:
            raise ValueError(f"the gap between two sessions must be at least 1 ms, not {gap}")
        super().__init__(SessionList(gap, values))
        self.gap, self.content_monoid = gap, values

    def lift(self, value: Any) -> dict[Any, list[Session]]:
        """Return a dict {key: [session]} for one tuple.

        `value` is the pair (event time, (key, value to merge)).
        """
        time, (key, content) = value
        return {key: self.values.lift((time, content))}

    def expire(self, state: dict[Any, list[Session]], watermark: int) -> dict[Any, list[Session]]:
        kept = ((key, [it for it in sessions if it[1] + self.gap > watermark]) for key, sessions in state.items())
        return {key: sessions for key, sessions in kept if sessions}

    @property
    def content(self) -> Monoid[Any]:
        return self.content_monoid

    def by_window(self, state: dict[Any, list[Session]]) -> dict[Any, Any]:
        """Return the content of each session. A session is identified by its key and its first and last event time."""
        return {(key, first, last): each for key, sessions in state.items() for first, last, each in sessions}

    def describe(self) -> str:
        return f"{type(self).__name__}({self.gap}, {self.content.describe()})"


def near_sessions(sessions: Sequence[Session], first: int, last: int, gap: int) -> slice:
    """Return the positions of the sessions that are less than `gap` ms away from the interval `first` to `last`."""
    begin = bisect_right(sessions, first - gap, key=lambda session: session[1])
    return slice(begin, bisect_left(sessions, last + gap, lo=begin, key=lambda session: session[0]))


def session_at(sessions: Sequence[Session], time: int) -> Session:
    """Return the session that contains the event time `time`. Raises KeyError if no session contains it."""
    if isinstance(sessions, MergedSessions):
        return sessions.at(time)
    for session in sessions[near_sessions(sessions, time, time, 1)]:
        return session
    raise KeyError(time)
