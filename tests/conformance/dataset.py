"""The records of the conformance tests: repeated events of HMB's example data set, each with its own number.

A record's number makes the record unique. A test therefore notices every lost, repeated or reordered record.
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
