"""The data set of HMB: 18,979 weather events in the public domain (data/README.md names source and license).

One event becomes one record. Its key is the city, its timestamp the time of the event, and its value the line of JSON,
byte for byte. The events are sorted by time, so a consumer sees time move forward as with live data.
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
    """A record for the demo. Its fields are the arguments of `Producer.send` after the topic, in the same order."""

    key: bytes
    value: bytes
    timestamp: int  # ms since 1970


def events() -> Iterator[WeatherEvent]:
    """Yield the events in the order of time."""
    with (files("hmb.cli") / "data" / "weather.jsonl").open("rb") as lines:
        for line in lines:
            value = line.rstrip(b"\n")
            fields = json.loads(value)
            timestamp = int(datetime.fromisoformat(fields["time"]).timestamp() * 1000)
            yield WeatherEvent(fields["city"].encode(), value, timestamp)
