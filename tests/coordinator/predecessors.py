"""Finds the previous states of each state. Tests compare them with `validPreviousStates` in Kafka's code."""

from __future__ import annotations

from collections import defaultdict
from enum import Enum
from typing import Any

from hmb.state_table import StateTable


def predecessors(table: StateTable[Any, Any]) -> dict[Enum, set[Enum]]:
    """Return the previous states of each state. A state without previous states is not in the result."""
    found: dict[Enum, set[Enum]] = defaultdict(set)
    for before, _, after in table:
        found[after].add(before)
    return dict(found)
