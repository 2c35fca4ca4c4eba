"""`Monoid`: the operations that a bolt needs for its state.

In the Hailstorm paper, a monoid has only the two operations `empty` and `merge`. For large states, `merge` is slow. For
example, a bolt that counts a million different words would copy all counts for each tuple. HMB therefore adds two
operations that can avoid this copy, `absorb` and `view`. If a monoid does not define them, the bolt uses `merge`
instead, with the same results:
    absorb(a, b)    returns the same state as merge(a, b), but may change `a` and keep parts of `b`;
                    afterwards, the caller uses only the result
    view(a, b)      returns the same state as merge(a, b), but may refer to `a` and `b` instead of copying them;
                    the caller only reads the result

A bolt calls `absorb` to add a tuple to its state. During a snapshot, the bolt has two states: it saves the
state A, and adds new tuples to the state B. To read its whole state, the bolt calls `view`, which combines A
and B.

A snapshot stores `to_value(state)`. A monoid whose states are plain values (numbers, strings, lists, dicts ...) needs
no conversion, so it does not define `to_value`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

S = TypeVar("S")


class Monoid(ABC, Generic[S]):
    """A kind of state that a bolt can have: an empty state, and an operation that merges two states.

    Three laws hold for all states a, b and c, as for a *commutative monoid* in mathematics:

    - merge(empty(), a) equals a
    - merge(a, b) equals merge(b, a)
    - merge(merge(a, b), c) equals merge(a, merge(b, c))

    The method `merge` never changes its arguments.
    """

    @abstractmethod
    def empty(self) -> S:
        """Return a new empty state."""

    @abstractmethod
    def merge(self, a: S, b: S) -> S:
        """Return a state that combines `a` and `b`. The result may share objects with `a` and `b`."""

    def lift(self, value: Any) -> S:
        """Return the state that contains only this value."""
        state: S = value
        return state

    def result(self, state: S) -> Any:
        """Return the value that users read from a state, for example the mean of a (sum, count) pair.

        By default this value is the state itself.
        """
        return state

    def absorb(self, a: S, b: S) -> S:
        """Return merge(a, b). This method may change `a` and keep parts of `b`. Afterwards, use only the result."""
        return self.merge(a, b)

    def view(self, a: S, b: S) -> S:
        """Return merge(a, b) for a caller that only reads the result.

        The result may refer to parts of `a` and `b`. Do not use it after `a` or `b` has changed.
        """
        return self.merge(a, b)

    def to_value(self, state: S) -> Any:
        """Return the state as a value that the codec can store."""
        return state

    def from_value(self, value: Any) -> S:
        """Return the state for a value that `to_value` has returned. This method is the inverse of `to_value`."""
        state: S = value
        return state

    def size(self, state: S) -> int:
        """Return the number of entries of a state. The live display of a running topology shows this number."""
        return len(state) if hasattr(state, "__len__") else 1

    def describe(self) -> str:
        """Return a text that describes this monoid, for example "MapOf(Sum())".

        A snapshot store keeps this text for each bolt. If the text for a bolt changes, the topology refuses to start,
        because the bolt's new monoid may not be able to read the stored states.

        A monoid with parameters overrides this method, and returns for example "HyperLogLog(12)".
        """
        return f"{type(self).__name__}()"


class FunctionMonoid(Monoid[S]):
    """A monoid that calls two functions of the user: one for `empty` and one for `merge`."""

    def __init__(self, empty: Callable[[], S], merge: Callable[[S, S], S]) -> None:
        self._empty, self._merge = empty, merge

    def empty(self) -> S:
        return self._empty()

    def merge(self, a: S, b: S) -> S:
        return self._merge(a, b)


class NoState(Monoid[None]):
    """The monoid of a bolt that remembers nothing. Its only state is None."""

    def empty(self) -> None:
        return None

    def merge(self, a: None, b: None) -> None:
        return None

    def lift(self, value: Any) -> None:
        return None

    def size(self, state: None) -> int:
        return 0
