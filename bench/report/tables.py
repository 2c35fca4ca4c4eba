"""Makes tables of benchmark results, and computes the ratio of two results, such as HMB's and Kafka's.

A *sample* is the result of one run of a benchmark, and a file can contain many samples. The functions in this
module make tables from samples, and do not run a benchmark. A benchmark command can therefore print a table of
its new samples. The documentation shows tables of the same form, made from samples in published files.

A ratio compares two runs of the same round, so it hardly changes when the whole machine becomes slower. In this
example, the machine becomes slower from round to round:
    round    HMB    Kafka    ratio
    0        300    250      1.20
    1        200    160      1.25        the median ratio is 1.20, although HMB's rate falls from 300 to 100
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
    """Group samples by the value that `key` returns for them. Groups are in the order of their first samples."""
    groups: dict[Key, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(key(sample), []).append(sample)
    return groups


def distribution(runs: Sequence[Sample], figure: str) -> Distribution:
    """Return the measured values with the name `figure`, for example "p50_ms", from all runs.

    Each run must contain this value.
    """
    return Distribution(tuple(run.figures[figure] for run in runs))


def ratios(
    runs: Sequence[Sample], reference: Sequence[Sample], value: Callable[[Sample], float]
) -> Distribution | None:
    """Divide the value of each run by the value of the reference run in the same round. Return these ratios.

    For example, `runs` contains the runs of HMB, and `reference` contains the runs of Kafka. `value` is a function
    that returns the value of a run, for example its records/s. If the run did not measure this value, the function
    returns NaN.

    If a value of a round is missing, or the value of the reference run is 0, the round has no ratio. If no round
    has a ratio, return None.
    """
    of_reference = {run.turn: value(run) for run in reference}
    pairs = [(value(run), of_reference.get(run.turn, math.nan)) for run in runs]
    found = tuple(ours / theirs for ours, theirs in pairs if ours >= 0 and theirs > 0)  # NaN fails both comparisons.
    return Distribution(found) if found else None
