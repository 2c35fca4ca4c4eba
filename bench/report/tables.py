"""Tables made of samples: what a command prints, and what the documentation shows of a published file.

Each suite has one function, `tables(samples)`, that needs nothing but the samples.  The command calls it with the runs
that it has just made, `docs/_ext/measurements.py` with those of a file in bench/results, so that what a reader sees is
what a repetition prints.  A figure is told as a median with its spread, a ratio is that of runs of the same turn.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from .samples import Sample
from .turns import Spread

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Table:
    """Rows of texts, the first of them the heading."""

    title: str
    rows: list[list[str]]


def text(tables: Sequence[Table]) -> Iterator[str]:
    """Lines with columns of one width each; those of numbers are ranged right."""
    for table in tables:
        columns = list(zip(*table.rows, strict=True))
        widths = [max(map(len, column)) for column in columns]
        numbers = [any(column[1:]) and all(_is_number(cell) for cell in column[1:]) for column in columns]
        yield table.title
        for row in table.rows:
            cells = zip(row, widths, numbers, strict=True)
            yield "  " + "  ".join(f"{cell:{'>' if number else '<'}{width}}" for cell, width, number in cells).rstrip()


def _is_number(cell: str) -> bool:
    return not cell or cell.replace(",", "").replace(".", "", 1).isdigit()


def by(samples: Sequence[Sample], key: Callable[[Sample], Key]) -> dict[Key, list[Sample]]:
    """The samples of each key, in the order in which the keys come first."""
    groups: dict[Key, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(key(sample), []).append(sample)
    return groups


def by_parameters(samples: Sequence[Sample], *names: str) -> dict[tuple[float | str, ...], list[Sample]]:
    return by(samples, lambda sample: tuple(sample.parameters[name] for name in names))


def spread(runs: Sequence[Sample], figure: str) -> Spread:
    """A figure of some runs."""
    return Spread(tuple(run.figures[figure] for run in runs))


def median(runs: Sequence[Sample], figure: str, unit: float = 1.0, form: str = ",.1f") -> str:
    """A figure's median, in some unit; nothing where it was not measured."""
    return f"{spread(runs, figure).median / unit:{form}}" if all(figure in run.figures for run in runs) else ""


def over(ours: Sequence[Sample], theirs: Sequence[Sample], figure: str) -> Spread | None:
    """The ratios of a figure, turn by turn; of a command that was broken off, those turns that both had."""
    others = {run.turn: run.figures[figure] for run in theirs}
    ratios = tuple(run.figures[figure] / others[run.turn] for run in ours if run.turn in others)
    return Spread(ratios) if ratios else None


def told(ratio: Spread | None) -> str:
    return "" if ratio is None else str(ratio)


def over_others(ours: Sequence[Sample], brokers: dict[str, list[Sample]], figure: str) -> str:
    """The first broker's ratio, told in the line of another."""
    first = next(iter(brokers.values()))
    return "" if ours is first else told(over(first, ours, figure))
