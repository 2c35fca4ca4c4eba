"""A view of a state table that tests compare with Kafka's `validPreviousStates`."""

from __future__ import annotations

from collections import defaultdict
from enum import Enum
from typing import Any

from hmb.state_table import StateTable


def predecessors(table: StateTable[Any, Any]) -> dict[Enum, set[Enum]]:
    """Return, for each state that can be reached, the states from which a transition leads to it."""
    found: dict[Enum, set[Enum]] = defaultdict(set)
    for before, _, after in table:
        found[after].add(before)
    return dict(found)
