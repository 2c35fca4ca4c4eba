"""The data set of HMB: 18,979 weather events, in the public domain (see data/README.md).

One weather event becomes one record. The key of the record is the city, and the timestamp of the record is the time of
the event. The value is the event's line of JSON, byte for byte. The events are sorted by time, so the timestamps
increase as in live data.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from importlib.resources import files
from typing import NamedTuple

TOPIC = "weather"
COUNT = 18_979


class WeatherEvent(NamedTuple):
    """A record to send. The fields have the same order as the arguments of `Producer.send` after the topic."""

    key: bytes
    value: bytes
    timestamp: int  # ms since 1970


def events() -> Iterator[WeatherEvent]:
    """Yield the events, the oldest first."""
    with (files("hmb.cli") / "data" / "weather.jsonl").open("rb") as lines:
        for line in lines:
            value = line.rstrip(b"\n")
            fields = json.loads(value)
            timestamp = int(datetime.fromisoformat(fields["time"]).timestamp() * 1000)
            yield WeatherEvent(fields["city"].encode(), value, timestamp)
