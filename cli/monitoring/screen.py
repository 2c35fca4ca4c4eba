"""The choices that a user of `hmb top` makes with the keyboard, and the table that shows the result.

A `Screen` shows one table: a list, for example all groups, or the details of one row, for example the members
of one group. For the list and for the details, the `Screen` remembers the filter, the selected row, and the
column by which the rows are sorted. `press` changes these choices, and `table` returns the rows. Neither method
uses a terminal, so a test can press keys and look at the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hmb.units import MS_PER_S

from .opened import OPENED
from .rates import Rates, shown_columns
from .trends import bars
from .views import PART, VIEWS, Row, missing, reason

Key = tuple[Any, ...]  # the values of the columns that identify a row
MOVES = {"up": -1, "down": 1, "page up": -10, "page down": 10}  # rows


@dataclass
class Choices:
    """The choices of the user for one table: the column for sorting, the filter and the selected row."""

    sorted_by: str
    filter: str = ""
    selected: Key | None = None  # None selects the first row


class ScreenTable(NamedTuple):
    """A table as `hmb top` draws it: a heading, columns, rows and the selected row."""

    heading: list[str]  # lines
    columns: Sequence[str]
    rows: list[Row]
    selected: int  # the number of the selected row


class Screen:
    """The user's choices in `hmb top`: the view, the opened row, and how the list and the details are shown."""

    def __init__(self, view: str) -> None:
        self.view = view
        self.opened: Key | None = None  # the row that the user has opened
        self.is_typing = False  # whether the keys that the user presses belong to the filter
        self.is_over = False
        self._list = Choices(VIEWS[view].sorted_by)
        self._inner: Choices | None = None  # after the user opens a row: the choices for the table of its details
        self._drawn: list[Key] = []  # the keys of the rows of the last table

    @property
    def choices(self) -> Choices:
        """The sorting, the filter and the selected row of the table that the user sees now."""
        return self._list if self._inner is None else self._inner

    @property
    def columns(self) -> Sequence[str]:
        return shown_columns(self.view) if self.opened is None else OPENED[self.view].columns

    # -- keys

    def press(self, key: str) -> None:
        """React to a key that the user has pressed: for example, the key "s" sorts the table by the next column."""
        if self.is_typing:
            self._type(key)
        elif key == "q":
            self.is_over = True
        elif key == "/":
            self.is_typing, self.choices.filter = True, ""
        elif key == "s":
            columns = self.columns
            self.choices.sorted_by = columns[(columns.index(self.choices.sorted_by) + 1) % len(columns)]
        elif key in MOVES:
            self._move(MOVES[key])
        elif key == "enter":
            self._open()
        elif key == "escape":
            self._go_back()
        else:
            self._choose_view(key)

    def _type(self, key: str) -> None:
        if key in ("enter", "escape"):  # Both keys end the typing. Enter keeps the filter, and Escape removes it.
            self.is_typing = False
            self.choices.filter = "" if key == "escape" else self.choices.filter
        elif key == "backspace":
            self.choices.filter = self.choices.filter[:-1]
        elif len(key) == 1:
            self.choices.filter += key

    def _move(self, rows: int) -> None:
        if self._drawn:
            index = self._index() + rows
            self.choices.selected = self._drawn[max(0, min(index, len(self._drawn) - 1))]

    def _open(self) -> None:
        if self.opened is None and self._drawn and self.view in OPENED:
            self.opened = self._list.selected = self._drawn[self._index()]
            self._inner = Choices(OPENED[self.view].sorted_by)

    def _go_back(self) -> None:
        """If the screen shows a row's details, show the list. Otherwise, remove the list's filter."""
        if self.opened is None:
            self._list.filter = ""
        self.opened = self._inner = None

    def _choose_view(self, key: str) -> None:
        chosen = next((name for name in VIEWS if name[0] == key), None)
        if chosen is None:
            return
        if chosen != self.view:
            self.view, self._list = chosen, Choices(VIEWS[chosen].sorted_by)
        self.opened = self._inner = None

    def _index(self) -> int:
        return self._drawn.index(self.choices.selected) if self.choices.selected in self._drawn else 0

    # -- the table

    def table(self, rates: Rates) -> ScreenTable:
        """Return the table that the user sees: sorted rows that match the filter."""
        rows = rates.rows(self.view)
        if self.opened is None:
            why = reason(rates.state, self.view)
            heading = self.view if why is None else f"{self.view}: {why}"
            return self._table([heading], VIEWS[self.view].keys, rows)
        keys = VIEWS[self.view].keys
        row = next((row for row in rows if _key(row, keys) == self.opened), None)
        name = "-".join(map(str, self.opened))
        if row is None:
            return self._table([f"{name} does not exist any more"], (), [])
        opened = OPENED[self.view]
        found = opened.rows(row[PART])
        why = missing(rates.state).get(opened.missing) or (None if found else opened.empty)
        heading = f"{name}: {opened.title}" if why is None else f"{name}: {opened.title}: {why}"
        return self._table([heading, *_trend_lines(row)], opened.keys, found)

    def _table(self, heading: list[str], keys: Sequence[str], rows: list[Row]) -> ScreenTable:
        rows = _arranged(rows, self.columns, self.choices)
        self._drawn = [_key(row, keys) for row in rows]
        return ScreenTable(heading, self.columns, rows, self._index())


def _key(row: Row, keys: Sequence[str]) -> Key:
    return tuple(row[key] for key in keys)


def _arranged(rows: list[Row], columns: Sequence[str], choices: Choices) -> list[Row]:
    """Return the sorted rows that match the filter.

    Numbers are in descending order, texts in alphabetical order.
    """
    wanted, column = choices.filter.lower(), choices.sorted_by
    rows = [row for row in rows if wanted in " ".join(str(row[name]) for name in columns).lower()]
    if any(isinstance(row[column], str) for row in rows):
        return sorted(rows, key=lambda row: str(row[column] or ""))
    return sorted(rows, key=lambda row: -(row[column] or 0))


def _trend_lines(row: Row) -> list[str]:
    """If the row is a group, return a line that shows how its lag has changed. Otherwise return an empty list."""
    if "lags" not in row:
        return []
    lags = row["lags"]
    span = f"lag over the last {(lags[-1][0] - lags[0][0]) // MS_PER_S} s: {bars(lags)} {row['lag']:,}"
    if row["trend"] is None:
        return [f"{span}, too few samples for a trend"]
    return [f"{span}, {row['trend']} ({row['lag_change']:+,} records/s)"]
