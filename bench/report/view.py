"""Views: a view declares which tables and charts show the results of a benchmark.

Each benchmark declares one `SampleView`. A view uses three terms:
- A *contestant* is one of the things that a benchmark compares, for example a broker, a client or a layout of threads.
- A *cell* is one task that all contestants do, for example to send messages of 100 B, or to serve 10 connections.
- The *reference* is the contestant with which all others are compared, usually Kafka.

For example, `hmb bench produce` has ten tasks (cells): ten combinations of a message size and a batch size. In each
task, the benchmark compares two brokers (contestants): HMB and Kafka 4.3.0. Kafka is the reference, so the tables show
HMB's values divided by Kafka's values.

Each column of a table shows one measured number, for example records/s. The table shows the median of all rounds and,
for most columns, the lowest and the highest value.

If a column has `compare=True`, the column to its right contains ratios: the values divided by the values of the
reference. For example, the ratio 2.0 means that HMB's rate is twice as high as Kafka's rate.

If a table has ratios for several tasks, a second table shows the median, the lowest and the highest ratio.

A view declares the tables and the charts of one benchmark. `hmb bench show` prints the tables, and `hmb bench plot`
draws the charts. The documentation contains both.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Protocol

from .distribution import Distribution, number
from .samples import Sample
from .tables import Table, group_by, ratios

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUNDS_FOR_VERDICT = 5
Cells = dict[str, dict[str, list[Sample]]]  # name of a task -> name of a broker or client -> results of each run


@dataclass(frozen=True)
class Column:
    """Describes one measured number, for example records/s: its column in a table and its panel in a chart."""

    key: str  # the name of the measured number in the dict `Sample.figures`
    label: str  # the heading of the column, with the unit
    scale: float = 1.0  # The measured number is multiplied by this factor, for example by 1e6 for microseconds.
    per: str = ""  # The measured number is divided by the parameter with this name; "" means no division.
    spread: bool = True  # whether the table shows the range in addition to the median
    compare: bool = False  # whether the table also shows ratios, for example HMB's value divided by Kafka's value
    more_is_better: bool = False
    digits: int = 1  # the number of digits after the decimal point, if the table shows no range

    def value(self, sample: Sample) -> float:
        """Return the sample's value for this column, in the column's unit. Return NaN if the value is missing."""
        divisor = float(sample.parameters.get(self.per, math.nan)) if self.per else 1.0
        return sample.figures.get(self.key, math.nan) * self.scale / divisor

    def measured(self, runs: Sequence[Sample]) -> bool:
        """Return whether the results of each run contain a value for this column, for example a value for records/s."""
        return not any(math.isnan(self.value(run)) for run in runs)

    def text(self, runs: Sequence[Sample]) -> str:
        """Return the text for a table: the median and the range of the values that `runs` have for this column.

        The text is empty if one of the runs has no such value.
        """
        if not self.measured(runs):
            return ""
        values = Distribution(tuple(map(self.value, runs)))
        return str(values) if self.spread else f"{values.median:,.{self.digits}f}"


class SuiteReport(Protocol):
    """An object that makes tables and charts from the samples of a benchmark, for example a `SampleView`."""

    def tables(self, samples: Sequence[Sample]) -> list[Table]: ...

    def charts(self, samples: Sequence[Sample]) -> dict[str, Figure]: ...


def broker(sample: Sample) -> str:
    return sample.broker


@dataclass(frozen=True)
class SampleView:
    """Declares which tables and charts are made from the samples of a benchmark."""

    columns: tuple[Column, ...]
    title: Callable[[Sample], str]  # returns the title of the table; samples with the same title share a table
    cell: Callable[[Sample], str] = lambda _: ""
    contestant: Callable[[Sample], str] = broker
    reference: int | None = 1  # index of the contestant with which all others are compared; None: no ratios
    x: Callable[[Sample], float] | None = None  # the position on the x axis; None: draw dots instead of curves
    x_label: Callable[[Sample], str] = lambda _: ""

    def tables(self, samples: Sequence[Sample]) -> list[Table]:
        """Return one table for each group of samples with the same title.

        If a table compares brokers or clients, a second table summarizes the ratios, for example HMB's rate divided by
        Kafka's rate. The method adds the second table only for several tasks, or for at least ROUNDS_FOR_VERDICT
        rounds.
        """
        found: list[Table] = []
        for title, of_title in group_by(samples, self.title).items():
            cells = self.runs(of_title)
            columns = [each for each in self.columns if any(each.key in run.figures for run in of_title)]
            found.append(self._table(title, cells, columns))
            rounds = len({run.turn for run in of_title})
            if len(cells) > 1 or rounds >= ROUNDS_FOR_VERDICT:
                found += self._summary(cells, columns, rounds)
        return found

    def charts(self, samples: Sequence[Sample]) -> dict[str, Figure]:
        """Draw one chart for each group of samples with the same title. Return a dict: file name -> chart."""
        from . import charts

        by_title = group_by(samples, self.title)
        name = samples[0].suite.split()[0]
        names = [name] if len(by_title) == 1 else [f"{name}-{position}" for position in range(1, len(by_title) + 1)]
        draw = charts.curves if self.x else charts.dots
        drawn = [draw(self, title, runs) for title, runs in by_title.items()]
        return dict(zip(names, drawn, strict=True))

    def runs(self, samples: Sequence[Sample]) -> Cells:
        """Group the samples by task (cell), and then by contestant. Return a dict: task -> contestant -> samples.

        A sample contains the results of one run. The contestants are the things that a benchmark compares, for example
        HMB and Kafka.
        """
        return {cell: group_by(runs, self.contestant) for cell, runs in group_by(samples, self.cell).items()}

    def reference_of(self, cells: Cells) -> str | None:
        """Return the name of the reference: the broker or client with which the tables compare all others.

        Return None if the view declares no reference, or if the samples contain only one broker or client.
        """
        names = list(dict.fromkeys(name for contestants in cells.values() for name in contestants))
        if self.reference is None or len(names) <= max(1, self.reference):
            return None
        return names[self.reference]

    def ratio(
        self, column: Column, contestants: dict[str, list[Sample]], name: str, reference: str
    ) -> Distribution | None:
        """Return one ratio for each round: the value of `name` divided by the value of `reference`.

        `name` and `reference` name two brokers or clients. `column` selects the value, for example records/s. The dict
        `contestants` maps each name to its runs of one task.

        A round has no ratio if a value is missing, or if the value of `reference` is 0. Return None if no round has a
        ratio, or if both names are equal.
        """
        if name == reference:
            return None
        return ratios(contestants.get(name, []), contestants.get(reference, []), column.value)

    def _table(self, title: str, cells: Cells, columns: Sequence[Column]) -> Table:
        reference = self.reference_of(cells)
        heading = ["", ""]
        for column in columns:
            heading += [column.label, f"over {reference}"] if column.compare and reference else [column.label]
        rows = [heading]
        for cell, contestants in cells.items():
            # The table has one row for each broker or client that ran the task `cell`. Only the first of these rows
            # shows the name of the task.
            shown = cell
            for name, runs in contestants.items():
                row = [shown, name]
                for column in columns:
                    row.append(column.text(runs))
                    if column.compare and reference:
                        row.append(str(self.ratio(column, contestants, name, reference) or ""))
                rows.append(row)
                shown = ""
        if not any(cells):
            rows = [row[1:] for row in rows]
        return Table(title, rows)

    def _summary(self, cells: Cells, columns: Sequence[Column], rounds: int) -> list[Table]:
        """Return a list with the table of the ratios, or an empty list if the samples have no ratios.

        A ratio is, for example, HMB's rate in one round divided by Kafka's rate in this round. The function calculates
        the median ratio of each task (cell). If three tasks have the medians 0.9, 1.2 and 1.5, the table shows the
        median 1.2, the lowest value 0.9 and the highest value 1.5.

        With at least five rounds (ROUNDS_FOR_VERDICT), the table names the tasks in which HMB was better than Kafka in
        every round, and the tasks in which HMB was worse in every round.

        If HMB and Kafka are equally fast, the probability is 1/16 that one of them wins all five rounds of a task by
        chance.
        """
        reference = self.reference_of(cells)
        if reference is None:
            return []
        heading = ["", "", "cells", "median", "lowest", "highest"]
        rows = [heading + (["better in every round", "worse in every round"] if rounds >= ROUNDS_FOR_VERDICT else [])]
        names = dict.fromkeys(name for contestants in cells.values() for name in contestants if name != reference)
        for name, column in itertools.product(names, (each for each in columns if each.compare)):
            found = {
                cell: ratio
                for cell, runs in cells.items()
                if (ratio := self.ratio(column, runs, name, reference))
            }
            if found:
                medians = [ratio.median for ratio in found.values()]
                figures = map(number, (median(medians), min(medians), max(medians)))
                verdicts = _verdicts(column, found) if rounds >= ROUNDS_FOR_VERDICT else []
                rows.append([name, column.label, str(len(found)), *figures, *verdicts])
        title = f"Ratios to {reference}: each cell counts with the median of its rounds"
        return [Table(title, rows)] if rows[1:] else []


def _verdicts(column: Column, found: dict[str, Distribution]) -> list[str]:
    """Return two texts: the tasks in which broker A wins every round, and those in which broker B does.

    For example, A is HMB and B is Kafka. The dict `found` maps each task to its ratios. Each ratio is A's value in
    one round divided by B's value in this round.

    If more is better, A wins a round with a ratio above 1. Otherwise, A wins with a ratio below 1. Both texts leave
    out tasks with fewer than ROUNDS_FOR_VERDICT rounds.
    """
    complete = {cell or "yes": ratio for cell, ratio in found.items() if len(ratio.values) >= ROUNDS_FOR_VERDICT}
    higher = [cell for cell, ratio in complete.items() if ratio.minimum > 1]
    lower = [cell for cell, ratio in complete.items() if ratio.maximum < 1]
    return ["; ".join(each) or "-" for each in ((higher, lower) if column.more_is_better else (lower, higher))]
