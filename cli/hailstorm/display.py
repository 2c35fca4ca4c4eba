"""Show a running topology on a terminal: a line with its state, and a line for each processor."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hmb.hailstorm.clock import Clock
from hmb.hailstorm.master import MasterState, Report


class TopologyDisplay:
    """Makes a table with one row for each processor, from the reports that the processors send.

    The column tuples/s contains the rate at which a processor's number of tuples grows. When the number changes,
    the display divides the increase by the time since the previous change. For example, if the number grows by 200
    in 0.5 s, the rate is 400. If the number has not changed for 1.5 s, the rate is 0.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._before: dict[str, tuple[float, int]] = {}  # processor -> (time in s, number of tuples) at the last change
        self._rates: dict[str, float] = {}

    def render(self, master: MasterState | None, living: Mapping[str, Report], snapshots: int | None) -> RenderableType:
        """Return a line about the topology, and below this line a table with one row for each processor."""
        self._measure(living)
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("processor")
        for column in ("tuples", "tuples/s", "state", "late", "dead", "queued"):
            table.add_column(column, justify="right")
        table.add_column("at")
        for name, report in sorted(living.items()):
            figures = report.figures
            table.add_row(
                name,
                _number(figures.get("tuples")),
                _number(round(self._rates.get(name, 0))),
                _number(figures.get("size")),
                _number(figures.get("late")),
                _number(figures.get("dead")),
                _number(figures.get("queued")),
                _position(figures),
            )
        return Group(Text(headline(self._name, master, snapshots), style="bold"), table)

    def _measure(self, living: Mapping[str, Report]) -> None:
        now = time.monotonic()
        for name, report in living.items():
            tuples = report.figures.get("tuples")
            if tuples is None:
                continue
            at, before = self._before.get(name, (now, tuples))
            if tuples < before:  # A new epoch has begun, and the count has started at 0 again.
                before = tuples
            if tuples != before and now > at:
                self._rates[name] = (tuples - before) / (now - at)
            elif now - at > 1.5:
                self._rates[name] = 0.0
            if tuples != before or name not in self._before:
                self._before[name] = now, tuples


def headline(name: str, master: MasterState | None, snapshots: int | None) -> str:
    """Return a line with the name of the topology, its state, and the offsets of its newest complete snapshot."""
    if master is None:
        return f"{name}: no negotiator"
    completed = f"complete at {_short(master.completed)}" if master.completed is not None else "no complete snapshot"
    count = f", {snapshots} snapshots" if snapshots is not None else ""
    return f"{name}: {master.phase.value}, epoch {master.epoch}, {completed}{count}"


def _position(figures: Mapping[str, Any]) -> str:
    if "position" in figures:
        return str(figures["position"])
    return _short(Clock.from_value(figures["mark"])) if "mark" in figures else ""


def _short(clock: Clock, most: int = 4) -> str:
    """Return a clock, which contains one offset for each partition, as a short text.

    If the clock has more than `most` partitions, the text contains only the sum of the offsets and the number of
    partitions.
    """
    return str(clock) if len(clock) <= most else f"{sum(clock.values())} in {len(clock)} partitions"


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
