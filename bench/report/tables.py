"""Tables as text, and the ratios between two contestants of a benchmark, for example HMB and Kafka.

The result of a run is called a sample, and a file can store many samples. A benchmark command prints tables of its new
samples. The documentation makes the same tables later, from samples in published files. The functions in this module
therefore use samples as their only input.

A ratio compares two runs of the same round. In this example, the machine becomes slower from round to round:
    round    HMB    Kafka    ratio
    0        300    250      1.20
    1        200    160      1.25        median ratio 1.20, although the rates differ by a factor of 3
    2        100     90      1.11
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from .distribution import Distribution
from .samples import Sample

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Table:
    """A table with a title. Each row is a list of texts, and the first row is the heading."""

    title: str
    rows: list[list[str]]


def text(tables: Sequence[Table]) -> Iterator[str]:
    """Yield the lines of the printed tables. Each column is as wide as its longest text. Numbers are aligned right."""
    for table in tables:
        columns = list(zip(*table.rows, strict=True))
        widths = [max(map(len, column)) for column in columns]
        numbers = [any(column[1:]) and all(_is_number(cell) for cell in column[1:]) for column in columns]
        yield table.title
        for row in table.rows:
            cells = zip(row, widths, numbers, strict=True)
            yield "  " + "  ".join(f"{cell:{'>' if number else '<'}{width}}" for cell, width, number in cells).rstrip()


def counted(count: float | str, noun: str) -> str:
    """Return a number with a noun in the singular or plural: "1 partition", "2,000 partitions"."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _is_number(cell: str) -> bool:
    return not cell or cell.replace(",", "").replace(".", "", 1).isdigit()


def group_by(samples: Sequence[Sample], key: Callable[[Sample], Key]) -> dict[Key, list[Sample]]:
    """Group samples by the value that `key` returns for them. The group of the first sample is the first group."""
    groups: dict[Key, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(key(sample), []).append(sample)
    return groups


def distribution(runs: Sequence[Sample], figure: str) -> Distribution:
    """Return the distribution of one figure over several runs. Each run must contain this figure."""
    return Distribution(tuple(run.figures[figure] for run in runs))


def ratios(
    runs: Sequence[Sample], reference: Sequence[Sample], value: Callable[[Sample], float]
) -> Distribution | None:
    """Divide the value of each run by the value of the reference run in the same round. Return these ratios.

    For example, `runs` contains the runs of HMB, and `reference` contains the runs of Kafka. The function `value`
    returns the value of a run, for example its records/s, or NaN if the run has not measured it.

    A round has no ratio if one of its two values is missing, or if the value of the reference is 0. Return None if no
    round has a ratio.
    """
    of_reference = {run.turn: value(run) for run in reference}
    pairs = [(value(run), of_reference.get(run.turn, math.nan)) for run in runs]
    found = tuple(ours / theirs for ours, theirs in pairs if ours >= 0 and theirs > 0)  # NaN fails both comparisons.
    return Distribution(found) if found else None
