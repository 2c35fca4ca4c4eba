"""State machines. Each state machine is a table of states, events and next states.

Groups, transactions and members of groups are state machines. The code declares each state machine as one table. When
an event happens, the code looks up the next state in this table. If the table contains no transition for the current
state and the event, this is an internal error. The diagrams in the documentation are drawn from the same tables.

For example, this is the state machine of a door with two states and two events::

    class Door(Enum):
        OPEN = "Open"
        CLOSED = "Closed"
    class DoorEvent(Enum):
        PUSHED = "somebody pushes the door"
        PULLED = "somebody pulls the door"
    DOOR = StateTable((Door.OPEN, DoorEvent.PUSHED, Door.CLOSED), (Door.CLOSED, DoorEvent.PULLED, Door.OPEN))
    DOOR.next(Door.OPEN, DoorEvent.PUSHED)     # Door.CLOSED
    DOOR.allows(Door.OPEN, DoorEvent.PULLED)   # False
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

StateT = TypeVar("StateT", bound=Enum)
EventT = TypeVar("EventT", bound=Enum)


class Transition(NamedTuple, Generic[StateT, EventT]):
    """One transition: in state `before`, `event` leads to state `after`."""

    before: StateT
    event: EventT
    after: StateT


class StateTable(Generic[StateT, EventT]):
    """The transitions of a state machine. For each state and each event, the table has at most one transition."""

    def __init__(self, *transitions: tuple[StateT, EventT, StateT]) -> None:
        self._transitions = [Transition(*transition) for transition in transitions]
        self._after = {(before, event): after for before, event, after in self._transitions}
        assert len(self._after) == len(self._transitions), "a state and an event have two transitions"

    def __iter__(self) -> Iterator[Transition[StateT, EventT]]:
        return iter(self._transitions)

    def allows(self, state: StateT, event: EventT) -> bool:
        """Return whether the event can happen in this state."""
        return (state, event) in self._after

    def next(self, state: StateT, event: EventT) -> StateT:
        """Return the state to which `event` leads from `state`.

        Raises AssertionError if `event` cannot happen in `state`.
        """
        assert self.allows(state, event), f"{event} cannot happen in state {state}"
        return self._after[state, event]
