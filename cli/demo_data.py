"""The data set shipped with HMB: 18,979 weather events, public domain (data/README.md has source and licence).

One event is one record: the city is its key, the event's own time its timestamp, and the line of JSON, byte for byte,
its value. The stream is sorted by time, so that what reads it sees time move forward, as it would with live data.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from importlib.resources import files
from typing import NamedTuple

TOPIC = "weather"
COUNT = 18_979


class Event(NamedTuple):
    """One record to send, in the order of a producer's arguments."""

    key: bytes
    value: bytes
    timestamp: int  # ms since 1970


def events() -> Iterator[Event]:
    """The data set, a record at a time."""
    with (files("hmb.cli") / "data" / "weather.jsonl").open("rb") as lines:
        for line in lines:
            value = line.rstrip(b"\n")
            fields = json.loads(value)
            timestamp = int(datetime.fromisoformat(fields["time"]).timestamp() * 1000)
            yield Event(fields["city"].encode(), value, timestamp)
