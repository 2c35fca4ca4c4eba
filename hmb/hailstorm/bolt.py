"""The bolt: a state that is a commutative monoid, and a function that makes tuples from this state.

For each tuple t, a bolt instance takes three steps:
    state' = merge(state, lift(t))        the tuple enters the state
    out    = transform(t, state')         zero or more tuples, computed with the new state
    send each tuple of `out` to the next nodes, with the origin of t

The word count of the Hailstorm paper is this bolt, whose state maps words to counts:
    Bolt(
        transform=lambda pair, counts: [(pair[0], counts[pair[0]])],    # ("love", 1) -> ("love", 101)
        empty=dict,
        merge=lambda a, b: {word: a.get(word, 0) + b.get(word, 0) for word in {**a, **b}},
        lift=lambda pair: {pair[0]: pair[1]},                           # ("love", 1) -> {"love": 1}
    )

Hailstorm's library contains the monoid `Sum`. A word count with `Sum` is faster than a bolt with its own function
`merge`, because `Sum` does not copy the map of counts for each tuple. A word count with `Sum` is written like this:
    Bolt.keyed(Sum(), key=lambda pair: pair[0], value=lambda pair: pair[1])

The four functions of a bolt (`transform`, `empty`, `merge` and `lift`) must be pure: their results depend only on their
arguments. `lift` returns a new state at each call. `transform` may read the state, but must not change it. The tuples
that `transform` returns must not contain parts of the state that can change. The function `hailstorm.check` tests these
rules.

**What may follow a bolt.** A bolt gets exact results from the outputs of another bolt only if it needs nothing but the
last output for each key. The reason is that the function `transform` computes outputs from a running state, for example
from the present count of a word. These outputs depend on the order in which tuples of different partitions arrive.

For example, a bolt adds the value 5 of partition 0 and the value 1 of partition 1. If the 5 arrives first, the bolt
sends the running sums 5 and 6. If the 1 arrives first, the bolt sends 1 and 6. A second bolt that adds these running
sums gets 11 or 7, which is not exact. A second bolt that keeps only the last running sum always gets 6.

A bolt may receive running values of another bolt, for example the new count of a word after each occurrence. The
receiving bolt gets exact results only if its state depends on nothing but the *last* value of each key. (In a snapshot,
this is the last value below the clock of the snapshot.) Two kinds of states have this property: the newest value by
version (`Newest`), and the maximum of a value that only grows (`TopN`, `Max`). Sums, counts and means of running values
do not have this property. The top n by a running mean does not have this property either. The function
`hailstorm.check` finds and names bolts without this property.

**Combining.** A bolt with `combine=True` does not receive every tuple separately. The processors that send to this bolt
merge the tuples of a batch by their keys, and send one state for each key. Combining saves time, and the bolt sends
fewer running values (results so far): one for each key and batch. The docstring of the module `processors.combiner`
explains why the states of the bolt stay exact.

Source: Hailstorm, chapter 3.4, "Bolts". The paper calls the functions of a bolt transformTupleFn, emptyState, mergeFn
and tupleToStateConverter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

from hmb.hailstorm.monoids.base import FunctionMonoid, Monoid, NoState
from hmb.hailstorm.monoids.containers import MapOf
from hmb.hailstorm.monoids.numbers import FloatSum, Mean, Sum
from hmb.hailstorm.monoids.windows import Sessions, Sliding, WindowsOf, session_at
from hmb.hailstorm.spout import EventTime

Transform = Callable[[Any, Any], Iterable[Any]]  # takes a tuple and a state; returns the tuples to send
Lift = Callable[[Any], Any]  # takes a tuple; returns the state that contains only this tuple


@dataclass(frozen=True)
class Combining:
    """The functions with which upstream processors merge a batch of tuples by key before they send it to a bolt.

    An upstream processor lifts each tuple to a small state, and merges the states of equal keys. For example, a bolt
    counts words. The processor makes the state 1 of each tuple "sun", and merges three of these states to 3.

    key        takes a tuple; returns its key, for example "sun"
    lift       takes a tuple; returns the state for this one tuple, without the key, for example 1
    states     the monoid that merges the results of `lift`
    transform  takes a key and the bolt's map of states (key -> state); returns the tuples that the bolt sends
    """

    key: Lift
    lift: Lift
    states: Monoid[Any]
    transform: Transform


class Bolt:
    """A bolt as the user declares it: the monoid of its states, and the functions that Hailstorm calls for each tuple.

    `key` returns the key of a tuple in the bolt's state. `key` is None if the bolt was not declared with a key.
    `mistake` describes a mistake in the declaration, or is None. The topology raises an error with this text and the
    name of the bolt.

    Invariants: `monoid` obeys the laws of a commutative monoid. `event_time` is set if and only if the monoid drops old
    windows. `combining` is set only if `monoid` is a map of states.
    """

    def __init__(
        self,
        transform: Transform,
        empty: Callable[[], Any],
        merge: Callable[[Any, Any], Any],
        lift: Lift,
    ) -> None:
        self.transform, self.lift = transform, lift
        self.monoid: Monoid[Any] = FunctionMonoid(empty, merge)
        self.event_time: EventTime | None = None
        self.combining: Combining | None = None
        self.key: Lift | None = None
        self.mistake: str | None = None

    @classmethod
    def over(cls, monoid: Monoid[Any], transform: Transform, lift: Lift | None = None) -> Self:
        """Return a bolt whose states belong to `monoid`.

        If `lift` is None, the monoid's own method `lift` turns a tuple into a state.
        """
        bolt = cls(transform, monoid.empty, monoid.merge, lift or monoid.lift)
        bolt.monoid = monoid
        if isinstance(monoid, WindowsOf):
            bolt.mistake = f"{monoid.describe()} needs the time of each tuple: declare the bolt with Bolt.windowed"
        return bolt

    @classmethod
    def stateless(cls, transform: Callable[[Any], Iterable[Any]]) -> Self:
        """Return a bolt that remembers nothing. The outputs for a tuple depend only on this tuple."""
        return cls.over(NoState(), lambda item, state: transform(item))

    @classmethod
    def keyed(
        cls, monoid: Monoid[Any], key: Lift, value: Lift, transform: Transform | None = None, *, combine: bool = False
    ) -> Self:
        """Return a bolt with one state of `monoid` for each key.

        If `transform` is None, the bolt sends (key, result) for each tuple, where `result` is the new result of the
        tuple's key. `key` is also the grouping of the bolt's node, unless the topology declares another grouping. With
        `combine=True`, the processors that send to the bolt first merge the tuples of a batch. The bolt then calls
        `transform` once for each key of a batch. The first argument of this call is the key instead of a tuple.
        """

        def running_result(name: Any, states: Any) -> list[Any]:
            return [(name, monoid.result(states[name]))]

        lift = monoid.lift
        for_key = transform if transform is not None and combine else running_result
        for_tuple = transform if transform is not None and not combine else lambda item, it: for_key(key(item), it)
        bolt = cls.over(MapOf(monoid), for_tuple, lambda item: {key(item): lift(value(item))})
        bolt.key = key
        if combine:
            bolt.combining = Combining(key, lambda item: lift(value(item)), monoid, for_key)
        return bolt

    @classmethod
    def windowed(
        cls, windows: WindowsOf, time: EventTime, key: Lift, value: Lift, transform: Transform | None = None
    ) -> Self:
        """Return a bolt with one state for each window and key.

        `windows` is `Tumbling` or `Sliding` over `MapOf(monoid)`, or `Sessions` over a monoid. If `transform` is None,
        the bolt sends ((key, start), result) for each window that contains the tuple. `start` is the start of the
        window, or the event time of the first tuple of the session, in ms. `key` is also the grouping of the bolt's
        node, unless the topology declares another grouping.
        """
        running = _running_sessions if isinstance(windows, Sessions) else _running_windows
        send = transform or (lambda item, state: running(windows, time(item), key(item), state))
        bolt = cls.over(windows, send, lambda item: windows.lift((time(item), (key(item), value(item)))))
        bolt.event_time, bolt.key = time, key
        bolt.mistake = _missing_map(windows, has_transform=transform is not None)
        return bolt

    @property
    def windows(self) -> WindowsOf | None:
        """The monoid of the bolt if its states are windows of event time; otherwise None.

        The bolt drops each window after the window has ended.
        """
        return self.monoid if isinstance(self.monoid, WindowsOf) and self.event_time else None


def _missing_map(windows: WindowsOf, *, has_transform: bool) -> str | None:
    """Return an error message if each window needs a map from keys to states, but has no such map; otherwise None.

    If the bolt has its own function `transform`, the state of a window may be something else than a map, for example
    the n largest values (`TopN`). But a single sum or mean is always an error, because it would mix the values of all
    keys.
    """
    values = windows.values
    has_map = isinstance(values, MapOf) and type(values).lift is MapOf.lift
    if isinstance(windows, Sessions) or has_map or (has_transform and not isinstance(values, Sum | FloatSum | Mean)):
        return None
    what = f"{windows.describe()} has no place for the keys of the tuples"
    return f"{what}: its last argument must be MapOf({values.describe()}), a map from each key to a state"


def _running_windows(windows: Any, time: int, key: Any, state: Any) -> list[Any]:
    """Return the new result of `key` in each window that contains `time`. Omit windows that the bolt has dropped."""
    assert isinstance(windows, Sliding)
    result = windows.values.values.result  # type: ignore[attr-defined]  # Each window has a MapOf, with `values`.
    return [((key, start), result(state[start][key])) for start in windows.starts(time) if start in state]


def _running_sessions(windows: Any, time: int, key: Any, state: Any) -> list[Any]:
    """Return a list with one result: the new result of the session of `key` that contains the event time `time`."""
    start, _, content = session_at(state[key], time)
    return [((key, start), windows.values.values.result(content))]
