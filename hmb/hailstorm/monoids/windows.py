"""Monoids for windows of event time: each window has a state of its own, which contains the values in this window.

The question "how many tweets contain #love in each hour" refers to the hour in which a tweet was *written* (its event
time). The question does not refer to the hour in which the topology processed the tweet. A replay processes tuples at
another time, but must return the same result. A window is therefore an interval of event time, in ms since 1970. A
window is a key of a map, like any other key. Three types of windows exist, here with duration 60 and step 30:
    Tumbling(duration)         [0, 60) [60, 120) ...                 each time is in one window
    Sliding(duration, step)    [0, 60) [30, 90) [60, 120) ...        each time is in duration / step windows, here in 2
    Sessions(gap)              a session ends when no value of its key follows within `gap` ms

A stream does not end, so a map of windows would grow forever. An *event-time watermark* W promises that no value with
an event time before W will arrive. A bolt can then drop the windows that end at or below W (the method `expire`). The
module `hmb.hailstorm.processors.event_time` explains how W is computed, and how a spout leaves out most late records.

Let W be the watermark of a bolt. When a snapshot begins, the bolt drops the windows that end at or below W. After that,
a late value (with an event time before W) can still arrive. The bolt does not merge this value into the dropped
windows. Otherwise a new count of 1 would replace the complete count of a dropped window. With sliding windows, some
windows of the late value can still be open, and the value enters these windows. A bolt counts the value as late only if
all windows of the value have ended.

Source: Akidau et al., "The Dataflow Model" (2015), chapter 1.3, for the three kinds of windows.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property, reduce
from typing import Any, overload

from hmb.hailstorm.monoids.base import Monoid
from hmb.hailstorm.monoids.containers import MapOf

Session = tuple[int, int, Any]  # the first and the last event time in ms, and the state of the session's values


class WindowsOf(MapOf):
    """A monoid of maps whose entries belong to windows of event time. A bolt can drop windows that have ended."""

    @abstractmethod
    def expire(self, state: dict[Any, Any], watermark: int) -> dict[Any, Any]:
        """Return the state without the windows that end at or below `watermark`, a time in ms."""

    @property
    @abstractmethod
    def content(self) -> Monoid[Any]:
        """The monoid of the content of one window."""

    @abstractmethod
    def by_window(self, state: dict[Any, Any]) -> dict[Any, Any]:
        """Return the content of each window of a state. A key of the result identifies a window, often by its start."""


class Sliding(WindowsOf):
    """Windows of `duration` ms.

    A new window starts every `step` ms. A state maps the start of each window to the window's state.
    """

    def __init__(self, duration: int, step: int, values: Monoid[Any]) -> None:
        if not duration >= step >= 1:
            raise ValueError(f"a window has duration >= step >= 1 ms, not duration {duration} and step {step}")
        super().__init__(values)
        self.duration, self.step = duration, step

    def starts(self, time: int) -> Iterable[int]:
        """Return the starts of all windows that contain the event time `time`, the newest start first."""
        return range(time - time % self.step, time - self.duration, -self.step)

    def lift(self, value: Any) -> dict[int, Any]:
        """Return the state of one (time, value) pair: each window that contains the time, with the value's state."""
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
    """The sessions of one key, in order of time.

    `merge` of two lists takes time in proportion to their lengths. A bolt therefore does not call `merge` for each
    tuple. `absorb` finds the position of a new session by bisection, so its time for one tuple grows with the logarithm
    of the number of sessions. The insertion into the Python list moves the pointers of all later sessions, which takes
    about 1 us for 10,000 sessions. `view` copies no list.

    Invariant: two sessions of the list are at least `gap` ms apart, because `merge` joins closer sessions.
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

    `at(time)` merges only the sessions near this time. The first call of any other method merges both lists.
    """

    def __init__(self, monoid: SessionList, a: list[Session], b: list[Session]) -> None:
        self._monoid, self._a, self._b = monoid, a, b

    @cached_property
    def _merged(self) -> list[Session]:
        return self._monoid.merge(self._a, self._b)

    def at(self, time: int) -> Session:
        """Return the session that contains the event time `time`. Raises KeyError if no session contains it."""
        found = [each for part in (self._a, self._b) for each in part[near_sessions(part, time, time, 1)]]
        if not found:  # The time can still lie between two sessions that become one session.
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

    A state maps each key to the list of its sessions. The time for one tuple grows with the logarithm of the number of
    sessions of its key, so sessions are about as fast as tumbling windows. The bolt holds every session in memory until
    the event-time watermark is `gap` ms above the end of the session. A long `allowed_lateness` of a spout delays the
    watermark, so the bolt holds more sessions.
    """

    def __init__(self, gap: int, values: Monoid[Any]) -> None:
        if gap < 1:
            raise ValueError(f"a session ends after a gap of at least 1 ms, not {gap}")
        super().__init__(SessionList(gap, values))
        self.gap, self.content_monoid = gap, values

    def lift(self, value: Any) -> dict[Any, list[Session]]:
        """Return the state of one (time, (key, value)) pair: a map from the key to a list with one session."""
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
