"""Monoids for windows of event time: each window has a state of its own, which contains the values in this window.

The *event time* of a tweet is the time when it was written, in ms since 1970. A topology processes the tweet later, and
after a crash perhaps a second time. The question "how many tweets contain #love in each hour" must have the same answer
in both cases, so the hours are hours of event time. A *window* is an interval of event time, for example one hour. A
bolt with windows keeps a separate state for each window, for example a count. Three types of windows exist, here with
duration 60 and step 30:
    Tumbling(duration)         [0, 60) [60, 120) ...                 each time is in one window
    Sliding(duration, step)    [0, 60) [30, 90) [60, 120) ...        each time is in duration / step windows, here in 2
    Sessions(gap)              a session ends when no value of its key follows within `gap` ms

A stream does not end, so a map of windows would grow forever. An *event-time watermark* W promises that no value with
an event time before W will arrive. A bolt can then drop the windows that end at or below W (the method `expire`). The
module `hmb.hailstorm.processors.event_time` explains how W is computed, and how a spout leaves out most late records.

**Late values.** The *event-time watermark* W of a bolt is the event time before which the bolt expects no more values.
When a snapshot begins, the bolt drops the windows that end at or below W. The bolt has already sent the results of
these windows to the next node, for example the count 500 of one window. A late value for this window can still arrive.
The bolt does not merge the late value into the dropped window. Otherwise, the window would begin again without its old
count. The bolt would send the count 1, and the next node could replace 500 by 1.

With sliding windows, one value belongs to several windows, and the bolt may have dropped only some of them. The bolt
then merges the value into the other windows. It counts a value as late, and leaves it out, only if it has dropped all
windows of this value.

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
    """The base class of `Sliding` and `Sessions`. Their states contain windows, and a bolt can drop old windows.

    A window is an interval of event time, and its content is the state of the values in this interval. `Sliding` maps
    the start of each window to the content of the window. `Sessions` maps each key to a list of its sessions.
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
        """Return the content of each window of a state. A key of the result identifies a window, often by its start."""


class Sliding(WindowsOf):
    """Windows of event time, each `duration` ms long. A new window starts every `step` ms, so windows can overlap.

    A state of this class is a map. It maps the start of each window (ms) to the content of the window, for example a
    map of counts. The parameter `values` defines what a content is, and how two contents are merged.
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
        """Return a map with one entry for each window that contains the event time of a tuple.

        The argument `value` is the pair (event time, value) of the tuple. The key of each entry is the start of the
        window. The content of the window contains only this value.
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
    """The sessions of one key, as a list in order of time. Each session has its first and last event time and a state.

    For each tuple, a bolt calls `absorb`, which adds the tuple to the bolt's own list. The method finds the position
    in the list by bisection, so its time grows only with the logarithm of the number of sessions. If the tuple begins
    a new session, Python moves the pointers of all later sessions. This takes about 1 us for 10,000 sessions. The
    method `merge` would copy the whole list for each tuple.

    During a snapshot, a bolt has two lists. The method `view` shows them as one list, and copies neither of them.

    Invariant: two sessions of a list are at least `gap` ms apart, because `merge` and `absorb` join closer sessions.
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
