"""A bolt in a topology merges each input tuple into a state, and sends new tuples made from the state.

A bolt handles each tuple t in three steps. The user writes the functions `lift`, `merge` and `transform`:
    state' = merge(state, lift(t))        `lift` makes a small state from t, and `merge` adds it to the bolt's state
    out    = transform(t, state')         `transform` returns a list of new tuples, made from t and the new state
    send each tuple of `out`              to the next bolts and sinks, with the origin of t (partition and offset)

This bolt is the word count of the Hailstorm paper. It receives pairs, for example ("love", 1), and its state maps words
to counts. If the state already contains the count 100 for "love", the bolt sends the tuple ("love", 101):
    Bolt(
        empty=dict,                                                     # the state before the first tuple: {}
        lift=lambda pair: {pair[0]: pair[1]},                           # the state of one tuple: {"love": 1}
        merge=lambda a, b: {word: a.get(word, 0) + b.get(word, 0) for word in {**a, **b}},    # adds the counts
        transform=lambda pair, counts: [(pair[0], counts[pair[0]])],    # the tuples to send: [("love", 101)]
    )

Hailstorm's library contains the monoid `Sum`. A word count with `Sum` is faster than a bolt with its own function
`merge`, because `Sum` does not copy the map of counts for each tuple. A word count with `Sum` is written like this:
    Bolt.keyed(Sum(), key=lambda pair: pair[0], value=lambda pair: pair[1])

The four functions of a bolt (`transform`, `empty`, `merge` and `lift`) must be pure: their results depend only
on their arguments. `lift` returns a new state at each call. `transform` may read the state, but must not change
it. The tuples that `transform` returns must not contain mutable parts of the state, such as lists. The function
`hailstorm.check` tests these rules.

**What may follow a bolt.** A bolt computes each output from its current state, so the outputs depend on the
order of the tuples. In each run, tuples of different partitions can arrive in a different order. Only the last
output for each key is the same in all runs. A second bolt that receives the outputs must therefore use only the
last output for each key.

For example, a bolt adds 5 from partition 0 and 1 from partition 1, and sends its sum after each value. If 5
arrives first, the bolt sends 5 and 6. If 1 arrives first, it sends 1 and 6. A second bolt that adds the
received sums gets 11 or 7: its result depends on the order. A second bolt that keeps only the last sum always
gets 6.

Three monoids can find the newest value of a key, even if the values arrive in the wrong order. `Newest`
keeps the value with the highest version. The topology computes this version: a number that grows with each
value of a key. For example, a mean of 4 numbers (version 4) replaces a mean of 3 numbers (version 3).

`Max` and `TopN` keep the largest values. Use them only for values that never become smaller, for example
counts.

If a bolt sums or averages another bolt's outputs, the result depends on the tuples' order.
`hailstorm.check` searches for this mistake.

**Combining.** A bolt with `combine=True` receives one state for each key of a batch, instead of single tuples.
To save time, the processor that sends the batch merges all tuples with the same key into one state. The bolt
then sends one result for each key of the batch, not one for each tuple. The docstring of the module
`processors.combiner` explains why the states of the bolt stay exact.

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
Lift = Callable[[Any], Any]  # takes a tuple; returns the state of a bolt that has received only this tuple


@dataclass(frozen=True)
class Combining:
    """The functions for a bolt whose senders merge tuples that have the same key.

    For example, the bolt counts words, and a batch contains the tuple "sun" three times. The sender makes the
    state 1 from each of the three tuples. Then it merges these states, and sends only the state 3 for "sun".

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
    """A bolt as the user declares it: functions that handle a tuple, and the monoid that merges states.

    monoid      merges two states; the order of the merges must not change the result
    lift        takes a tuple; returns the state of a bolt that has received only this tuple
    transform   takes a tuple and the bolt's state; returns the tuples that the bolt sends
    key         takes a tuple; returns its key in the bolt's state. None if the bolt is declared without a key
    event_time  takes a tuple; returns its event time (ms since 1970). None if the bolt has no windows
    combining   functions with which senders merge tuples of the same key. None if senders send single tuples
    mistake     the text of a mistake in the declaration, or None. The topology raises an error with this text

    Invariant: if `combining` is not None, the bolt's state is a map with one state for each key.
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
        """Return a bolt that merges its states with `monoid`, for example with `Sum()`.

        - `transform` takes a tuple and the bolt's state, and returns the tuples to send.
        - `lift` takes a tuple, and returns the state of a bolt that has received only this tuple. The default is the
          method `lift` of `monoid`.

        `monoid` must not be a monoid of windows, for example `Tumbling`: such a bolt needs `Bolt.windowed`.
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
        """Return a bolt that keeps one state for each key, for example one count for each word.

        `key` takes a tuple and returns its key. `value` takes a tuple and returns the value that `monoid` merges
        into the state of this key. All tuples with the same key go to the same instance of the bolt, unless the
        topology declares another grouping.

        `transform` takes a tuple and the map of states, and returns the tuples to send. If `transform` is None, the
        bolt sends the key and its new result for each tuple, for example ("sun", 3).

        With `combine=True`, the senders merge the tuples of a batch by key. The first argument of `transform` is
        then a key, and the bolt calls `transform` once for each key of the batch.
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
        """Return a bolt that keeps one state for each window of event time and each key.

        The functions `time`, `key` and `value` take a tuple. `time` returns the event time of the tuple (ms since
        1970), and `key` returns the key of the tuple. `value` returns the value that the bolt merges into the state.
        Two examples of `windows`:

        - `Tumbling(60_000, MapOf(Sum()))`: the sum of each key in each minute
        - `Sessions(60_000, Sum())`: sessions that end after a minute without a tuple

        If `transform` is None, each input tuple produces new results. For each window that contains the tuple, the bolt
        sends ((key, start), result). `start` is the start of the window in ms. A session starts at the event time of
        its earliest tuple. The bolt sends no result for a window that it has already dropped.

        All tuples with the same key go to the same instance of the bolt, unless the topology declares another grouping.
        """
        running = _running_sessions if isinstance(windows, Sessions) else _running_windows
        send = transform or (lambda item, state: running(windows, time(item), key(item), state))
        bolt = cls.over(windows, send, lambda item: windows.lift((time(item), (key(item), value(item)))))
        bolt.event_time, bolt.key = time, key
        bolt.mistake = _missing_map(windows, has_transform=transform is not None)
        return bolt

    @property
    def windows(self) -> WindowsOf | None:
        """The monoid that merges the bolt's states window by window, or None if the bolt has no windows.

        The bolt keeps one state for each window of event time, and drops this state after the window has ended.
        """
        return self.monoid if isinstance(self.monoid, WindowsOf) and self.event_time else None


def _missing_map(windows: WindowsOf, *, has_transform: bool) -> str | None:
    """Return an error message if the windows of a bolt would mix values of different keys, otherwise None.

    The result is None in three cases:

    - The windows are `Sessions`, which keep a separate state for each key.
    - Each window contains a map from keys to states, for example `MapOf(Sum())`.
    - `has_transform` is True (the user passes a function `transform`), and the windows contain no sum or mean.
      Other states, such as `TopN(3)`, can store the keys.
    """
    values = windows.values
    has_map = isinstance(values, MapOf) and type(values).lift is MapOf.lift
    if isinstance(windows, Sessions) or has_map or (has_transform and not isinstance(values, Sum | FloatSum | Mean)):
        return None
    what = f"{windows.describe()} has no place for the keys of the tuples"
    return f"{what}: its last argument must be MapOf({values.describe()}), a map from each key to a state"


def _running_windows(windows: Any, time: int, key: Any, state: Any) -> list[Any]:
    """Return the result for `key`, such as a count, from each window that contains `time`. Omit dropped windows."""
    assert isinstance(windows, Sliding)
    result = windows.values.values.result  # type: ignore[attr-defined]  # Each window has a MapOf, with `values`.
    return [((key, start), result(state[start][key])) for start in windows.starts(time) if start in state]


def _running_sessions(windows: Any, time: int, key: Any, state: Any) -> list[Any]:
    """Return a list with the result of one session of `key`: the session that contains the event time `time`."""
    start, _, content = session_at(state[key], time)
    return [((key, start), windows.values.values.result(content))]
