"""`Monoid`: the operations that a bolt needs for its state.

`empty` and `merge` define a monoid, and the paper has only these two. They are slow for large states: a bolt that
counts a million words would copy the whole map for each tuple. Two more operations avoid that copy. A monoid that does
not define them uses `merge` instead. Its results are the same, only slower:

    absorb(a, b)    the same state as merge(a, b); may change `a` and keep parts of `b`; use only the result
    view(a, b)      the same state as merge(a, b), only to be read; may refer to `a` and `b` instead of copying

A bolt calls `absorb` for each tuple. While its state is split into A and B, it calls `view` to read both as one state.

A snapshot stores `to_value(state)`. Monoids whose states are plain values (numbers, strings, lists, dicts ...) need no
conversion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

S = TypeVar("S")


class Monoid(Generic[S]):
    """A commutative monoid over states of type S.

    Invariants: `merge` is associative and commutative, `empty()` is its identity, and `merge` changes neither argument.
    """

    def empty(self) -> S:
        """Return a new empty state."""
        raise NotImplementedError

    def merge(self, a: S, b: S) -> S:
        """Return the combination of two states. The result may share parts with them."""
        raise NotImplementedError

    def lift(self, value: Any) -> S:
        """Return the state of one value."""
        state: S = value
        return state

    def result(self, state: S) -> Any:
        """Return the value that a state stands for, for example a mean or an estimate.

        By default this is the state itself.
        """
        return state

    def absorb(self, a: S, b: S) -> S:
        """Return merge(a, b). The operation may change `a` and keep parts of `b`."""
        return self.merge(a, b)

    def view(self, a: S, b: S) -> S:
        """Return merge(a, b) for a caller that only reads the result. The result is valid until `a` or `b` changes."""
        return self.merge(a, b)

    def to_value(self, state: S) -> Any:
        """Return the state as a value that the codec stores."""
        return state

    def from_value(self, value: Any) -> S:
        """Return the state from which `to_value` has made this value."""
        state: S = value
        return state

    def size(self, state: S) -> int:
        """Return the number of entries of a state, which displays of a running topology show."""
        return len(state) if hasattr(state, "__len__") else 1


class FunctionMonoid(Monoid[S]):
    """A monoid made of two functions of the user."""

    def __init__(self, empty: Callable[[], S], merge: Callable[[S, S], S]) -> None:
        self._empty, self._merge = empty, merge

    def empty(self) -> S:
        return self._empty()

    def merge(self, a: S, b: S) -> S:
        return self._merge(a, b)


class NoState(Monoid[None]):
    """The state of a bolt that remembers nothing: None is the only state."""

    def empty(self) -> None:
        return None

    def merge(self, a: None, b: None) -> None:
        return None

    def lift(self, value: Any) -> None:
        return None

    def size(self, state: None) -> int:
        return 0
