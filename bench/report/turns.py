"""Turns and ratios: how two contestants are compared on a machine that is never quiet.

Contestants run one after the other, again and again, and the one that goes first changes each time.  What the machine
does meanwhile hits neighbours alike, so the ratio of two runs of the same turn says more than any rate, and what
counts is the median of these ratios, with their spread beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

Contestant = TypeVar("Contestant")


def in_turns(contestants: Sequence[Contestant], repeat: int) -> Iterator[tuple[int, Contestant]]:
    """(turn, contestant): every contestant once a turn, each turn begun by another one."""
    for turn in range(repeat):
        first = turn % len(contestants)
        for contestant in (*contestants[first:], *contestants[:first]):
            yield turn, contestant


@dataclass(frozen=True)
class Spread:
    """Some values of the same thing."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def least(self) -> float:
        return min(self.values)

    @property
    def most(self) -> float:
        return max(self.values)

    def __str__(self) -> str:
        return f"{_text(self.median)} ({_text(self.least)} .. {_text(self.most)})"


def _text(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
