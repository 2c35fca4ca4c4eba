"""Windows of event time: maps from windows to states.

The question "how many tweets contain #love in each hour" refers to the hour in which a tweet was *written* (its event
time). It does not refer to the hour in which the topology processed the tweet. A replay processes tuples at another
time, but must return the same result. A window is therefore an interval of event time, in ms since 1970. A window is a
key of a map, like any other key. Three types of windows exist:
    Tumbling(duration)         [0, 60) [60, 120) ...                 one window for each time
    Sliding(duration, step)    [0, 60) [30, 90) [60, 120) ...        duration / step windows for each time
    Sessions(gap)              grows as long as values are less than `gap` apart; one list of sessions for each key

A stream does not end, so a map of windows would grow forever. An *event-time watermark* W promises that no value with
an event time before W will arrive. A bolt can then drop the windows that end at or below W (the method `expire`). The
module `hmb.hailstorm.processors.event_time` explains how W is computed. A value is *late* if it arrives anyway and its
event time is before W. Before a bolt merges the windows of a late value, it drops the windows that end at or below W.
If the bolt merged such a window, a new count of 1 would replace the complete count of the dropped window.

Source: Akidau et al., "The Dataflow Model" (2015), chapter 1.3, for the three kinds of windows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hmb.hailstorm.monoids.base import Monoid
from hmb.hailstorm.monoids.containers import MapOf

Session = tuple[int, int, Any]  # the first and the last event time in ms, and the state of the session's values


class WindowsOf(MapOf):
    """A map whose entries belong to windows of event time. A bolt can drop the windows that have ended."""

    def expire(self, state: dict[Any, Any], watermark: int) -> dict[Any, Any]:
        """Return the state without the windows that end at or below `watermark`, a time in ms."""
        raise NotImplementedError

    @property
    def content(self) -> Monoid[Any]:
        """The monoid of the content of one window."""
        raise NotImplementedError

    def by_window(self, state: dict[Any, Any]) -> dict[Any, Any]:
        """Return the content of each window of a state. The key of a window identifies it."""
        raise NotImplementedError


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

    def result(self, state: list[Session]) -> list[Session]:
        return [(first, last, self.values.result(each)) for first, last, each in state]

    def to_value(self, state: list[Session]) -> Any:
        return [(first, last, self.values.to_value(each)) for first, last, each in state]

    def from_value(self, value: Any) -> list[Session]:
        return [(first, last, self.values.from_value(each)) for first, last, each in value]


class Sessions(WindowsOf):
    """Sessions by key. In a session, less than `gap` ms lie between each value and the next value of the key.

    A state maps each key to the list of its sessions.
    """

    def __init__(self, gap: int, values: Monoid[Any]) -> None:
        if gap < 1:
            raise ValueError(f"a session ends after a gap of at least 1 ms, not {gap}")
        super().__init__(SessionList(gap, values))
        self.gap, self.content_monoid = gap, values

    def lift(self, value: Any) -> dict[Any, list[Session]]:
        """Return a map from the key to a list with one session, for one (time, (key, value)) pair."""
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


def session_at(sessions: Iterable[Session], time: int) -> Session:
    """Return the session that contains a time. Raises KeyError if no session contains it."""
    for session in sessions:
        if session[0] <= time <= session[1]:
            return session
    raise KeyError(time)
