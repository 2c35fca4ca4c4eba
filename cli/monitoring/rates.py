"""Compares two states of a broker, and computes how fast the broker's counters grow.

For example, the number of handled requests is 500 in the older state, and 520 in the newer state, 2 s later. The
rate is 10 requests per second.
"""

from __future__ import annotations

from typing import Any

from hmb.units import MS_PER_S

from .source import State
from .trends import LagSamples
from .views import VIEWS

RATE = "rate"


def shown_columns(view: str) -> list[str]:
    """Return the columns of a view: first the columns that identify a row, then the rate, then all others."""
    columns, keys = list(VIEWS[view].columns), len(VIEWS[view].keys)
    return [*columns[:keys], RATE, *columns[keys:]]


class Rates:
    """Stores the two newest states of a broker, and computes rates from them."""

    def __init__(self, state: State) -> None:
        self._lags = LagSamples()
        self._lags.complete(state)
        self.state = self._before = state

    def update(self, state: State) -> None:
        self._lags.complete(state)
        self._before, self.state = self.state, state

    def rows(self, view: str) -> list[dict[str, Any]]:
        """Return the rows of a view. The column `rate` shows by how much a counter of the row grows per second.

        The method compares the two newest states of the broker. It divides the growth of the counter by the time
        between the two states. The rate is None in two cases:

        - The older state does not contain the row, or the time between the states is 0.
        - The counter has become smaller, because the broker has restarted, or the topic was deleted and created again.
        """
        keys, counter = VIEWS[view].keys, VIEWS[view].counter
        seconds = (self.state["time"] - self._before["time"]) / MS_PER_S
        before = {tuple(row[key] for key in keys): row[counter] for row in VIEWS[view].rows(self._before)}
        rows = VIEWS[view].rows(self.state)
        for row in rows:
            grown = row[counter] - before.get(tuple(row[key] for key in keys), row[counter] + 1)
            row[RATE] = round(grown / seconds, 1) if grown >= 0 and seconds > 0 else None
        return rows
