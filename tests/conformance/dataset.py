"""The records that conformance runs write: the shipped data set, over and over, each event with a running number.

The number makes every record different from every other, so that one lost, doubled or out of order cannot go unseen.
"""

from __future__ import annotations

from itertools import cycle, islice
from pathlib import Path

from hmb.cli.demo_data import events


def write_lines(path: Path, records: int) -> Path:
    """Fill `path` with `records` lines of JSON: `{"number":0,"time":...}`."""
    values = [event.value for event in events()]
    with path.open("wb") as file:
        for number, value in enumerate(islice(cycle(values), records)):
            file.write(b'{"number":%d,%s\n' % (number, value.removeprefix(b"{")))
    return path
