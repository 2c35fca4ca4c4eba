"""The monoids `SetOf` (merges sets), `MapOf` (merges maps) and `Newest` (keeps the highest version).

For example, the word count in the Hailstorm paper has the state `MapOf(Sum())`: a map from words to counts. A
missing word has the count 0.

A *monoid* is a set of values that can be merged. Maps form a monoid if their values form a monoid: to merge two
maps, `MapOf` merges the values of each key.

A topology usually groups tuples by the keys of the map: all tuples with the same key go to the same instance of
a bolt. Each key is therefore in the map of only one instance.

While a bolt takes a snapshot, it keeps its state in two maps. To read both maps as one, the bolt calls `MapOf.view`.
This method returns a `MergedMap`, and copies neither map. When the bolt reads a key, the `MergedMap` looks up this key
in both maps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from hmb.hailstorm.codec import encode
from hmb.hailstorm.monoids.base import Monoid

V = TypeVar("V")


class MergedMap(Mapping[Any, Any]):
    """A read-only map that shows two maps of states as if they were merged.

    If both maps contain a key, `MergedMap` merges the two states of this key when a caller reads the key.
    """

    __slots__ = ("_a", "_b", "_values")

    def __init__(self, values: Monoid[Any], a: Mapping[Any, Any], b: Mapping[Any, Any]) -> None:
        self._values, self._a, self._b = values, a, b

    def __getitem__(self, key: Any) -> Any:
        if key not in self._b:
            return self._a[key]
        if key not in self._a:
            return self._b[key]
        return self._values.view(self._a[key], self._b[key])

    def __iter__(self) -> Iterator[Any]:
        yield from self._a
        for key in self._b:
            if key not in self._a:
                yield key

    def __len__(self) -> int:
        return len(self._a) + sum(key not in self._a for key in self._b)


class MapOf(Monoid[dict[Any, Any]]):
    """A map from keys to states. Two maps merge key by key.

    The parameter `values` is the monoid of the states. For example, a map of `MapOf(Sum())` contains a sum for each
    key: {"a": 1} and {"a": 2, "b": 5} merge to {"a": 3, "b": 5}.
    """

    def __init__(self, values: Monoid[Any]) -> None:
        self.values = values

    def empty(self) -> dict[Any, Any]:
        return {}

    def merge(self, a: dict[Any, Any], b: dict[Any, Any]) -> dict[Any, Any]:
        merge = self.values.merge
        return {**a, **{key: merge(a[key], value) if key in a else value for key, value in b.items()}}

    def lift(self, value: Any) -> dict[Any, Any]:
        """Return the map {key: state} for a pair (key, value). `values.lift` makes the state from the value."""
        return {value[0]: self.values.lift(value[1])}

    def absorb(self, a: dict[Any, Any], b: dict[Any, Any]) -> dict[Any, Any]:
        absorb = self.values.absorb
        for key, value in b.items():
            a[key] = absorb(a[key], value) if key in a else value
        return a

    def view(self, a: dict[Any, Any], b: dict[Any, Any]) -> Any:
        return MergedMap(self.values, a, b)

    def result(self, state: Mapping[Any, Any]) -> Any:
        return {key: self.values.result(value) for key, value in state.items()}

    def to_value(self, state: dict[Any, Any]) -> dict[Any, Any]:
        convert = self.values.to_value
        if type(self.values).to_value is Monoid.to_value:
            return state
        return {key: convert(value) for key, value in state.items()}

    def from_value(self, value: dict[Any, Any]) -> dict[Any, Any]:
        convert = self.values.from_value
        if type(self.values).from_value is Monoid.from_value:
            return value
        return {key: convert(each) for key, each in value.items()}

    def describe(self) -> str:
        return f"{type(self).__name__}({self.values.describe()})"


class SetOf(Monoid[set[Any]]):
    """Sets of hashable values. Two sets merge by union."""

    def empty(self) -> set[Any]:
        return set()

    def merge(self, a: set[Any], b: set[Any]) -> set[Any]:
        return a | b

    def lift(self, value: Any) -> set[Any]:
        return {value}

    def absorb(self, a: set[Any], b: set[Any]) -> set[Any]:
        a |= b
        return a


class Newest(Monoid[tuple[Any, Any] | None]):
    """The value with the highest version. A state is a pair (version, value), or None if it is empty.

    For example, a bolt computes the mean for a key, and sends this mean again after each new number. The next bolt
    uses `Newest` to keep only the last mean. The version must grow with each new mean. For example, it can be the
    count of numbers in the mean.

    If two different values have the same version, `Newest` keeps the value with the larger encoding (bytes). So
    the result does not depend on the order of merges.
    """

    def empty(self) -> None:
        return None

    def merge(self, a: tuple[Any, Any] | None, b: tuple[Any, Any] | None) -> tuple[Any, Any] | None:
        if a is None or b is None:
            return b if a is None else a
        if a[0] != b[0]:
            return b if a[0] < b[0] else a
        return a if a[1] == b[1] or encode(a[1]) > encode(b[1]) else b

    def result(self, state: tuple[Any, Any] | None) -> Any:
        return state and state[1]

    def size(self, state: tuple[Any, Any] | None) -> int:
        return 1
