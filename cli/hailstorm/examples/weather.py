"""Sum the rain of Seattle in windows of four weeks, and write the sums to a database exactly once.

The records are the weather events in `cli/data`. The example uses the daily events of Seattle, which contain the
precipitation in mm. The example ignores the hourly temperatures. The date in an event decides to which window the event
belongs. The time at which a processor reads the event makes no difference. The records flow through these processors:
    weather -> rain (2 instances, windows of 28 days) -> rows -> database

For each city and window, the bolt `rain` computes the sum of the precipitation. The sink `database` writes each
sum into one row of the database. The sink is transactional: it also writes a *clock* in the same transaction.
For each partition of the topic, the clock contains the offset of the next record to read. The rows and the
clock therefore always match, even after a crash: the sums include each record below these offsets exactly once.

The example assigns events to windows by their dates, as in Akidau et al., "The Dataflow Model" (2015).
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hmb.client import ConsumerRecord
from hmb.hailstorm import Bolt, FloatSum, MapOf, Spout, SqliteTarget, Topology, TransactionalSink, Tumbling
from hmb.hailstorm.targets import DatabaseTarget

from ... import demo_data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOPIC, PARTITIONS = "weather-events", 2
DAY = 24 * 3600 * 1000  # ms
WINDOW = 28 * DAY
DATABASE = os.environ.get("HAILSTORM_WEATHER_DB", "hailstorm-weather.db")
CREATE = "CREATE TABLE IF NOT EXISTS rain (city TEXT, start INTEGER, mm REAL, PRIMARY KEY (city, start))"
REPLACE = "INSERT OR REPLACE INTO rain VALUES (?, ?, ?)"

Rain = tuple[str, int, float]  # city, time in ms, mm


def rain_of(record: ConsumerRecord) -> Rain | None:
    """Return the city, the time and the precipitation of a daily event. Return None for an hourly event."""
    event = json.loads(record.value)
    if event["kind"] != "day":
        return None
    return event["city"], record.timestamp, event["precipitation_mm"]


def row(item: tuple[tuple[str, int], float]) -> tuple[str, int, float]:
    """Return the database row for `item`: the city, the start of the window (ms since 1970), and the rain (mm)."""
    (city, start), millimeters = item
    return city, start, millimeters


def target() -> DatabaseTarget:
    return SqliteTarget(DATABASE, REPLACE, CREATE)


topology = Topology("weather")
topology.spout("weather", Spout(TOPIC, rain_of, event_time=lambda rain: rain[1], allowed_lateness=DAY))
windows = Tumbling(WINDOW, MapOf(FloatSum()))
rain_bolt = Bolt.windowed(windows, time=lambda rain: rain[1], key=lambda rain: rain[0], value=lambda rain: rain[2])
topology.bolt("rain", rain_bolt, after="weather", parallelism=2)
topology.bolt("rows", Bolt.stateless(lambda item: [row(item)]), after="rain")
topology.sink("database", TransactionalSink(target), after="rows")


def records() -> Iterator[tuple[bytes, bytes, int]]:
    """Yield (key, value, timestamp) of each record: the city, the event as JSON, and the time of the event in ms."""
    for event in demo_data.events():
        yield event.key, event.value, event.timestamp


def prepare() -> None:
    """Delete the database of an earlier run.

    The database contains the next offset to read from each partition of a topic. Each run creates a new topic, for
    which the offsets of the old topic would be wrong.
    """
    Path(DATABASE).unlink(missing_ok=True)


def sums() -> list[tuple[str, int, float]]:
    """Return the rows of the database: city, start of four weeks (ms since 1970), rain in these four weeks (mm)."""
    with sqlite3.connect(DATABASE) as connection:
        return connection.execute("SELECT city, start, mm FROM rain ORDER BY start, city").fetchall()


def lines(states: dict[str, Any]) -> list[str]:
    """Return the result as lines of text: the ten windows with the most rain."""
    wettest = sorted(sums(), key=lambda each: -each[2])[:10]
    return [f"{date_of(start)}  {city:14} {millimeters:7.1f} mm" for city, start, millimeters in wettest]


def date_of(time: int) -> str:
    return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time):%Y-%m-%d}"


def draw(states: dict[str, Any]) -> Figure:
    """Return a picture of the result: the rain of each window."""
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot()
    for city in sorted({city for city, _, _ in sums()}):
        points = [(start, millimeters) for name, start, millimeters in sums() if name == city]
        dates = np.array([start for start, _ in points], dtype="datetime64[ms]")
        axes.step(dates, [millimeters for _, millimeters in points], where="post", label=city)
    axes.set_title("Precipitation in windows of four weeks of event time")
    axes.set_ylabel("mm")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
