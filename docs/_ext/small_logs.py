"""Makes small logs for drawings, so that a drawing shows batches that HMB really wrote.

For example, these lines make a log with two records:
    with small_log(LogConfig(segment_bytes=1_000)) as log:
        append(log, ("ada", "Main"), ("bob", "Oak"))

The function `small_log` makes a log in a temporary directory, which exists until the end of the `with` block.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from hmb.records import Batch, Record, RecordBatch, TimestampType, encode_batch, parse_batch, read_records
from hmb.storage.config import LogConfig
from hmb.storage.dump.inspection import Search, search
from hmb.storage.log import Log
from hmb.storage.segment import Segment

NOW = 1_000  # ms; the default clock of a small log always returns this time


@contextmanager
def small_log(config: LogConfig, *, first_offset: int = 0, clock: Callable[[], int] = lambda: NOW) -> Iterator[Log]:
    """Create an empty log that begins at `first_offset`. `clock` returns the time in ms."""
    with TemporaryDirectory() as directory:
        yield Log(Path(directory), config, recovery_point=first_offset, clock=clock)


def append(log: Log, *records: tuple[str | None, str | None], timestamp: int = NOW) -> None:
    """Append one batch. Each record is a pair of a key and a value."""
    encoded = [
        Record(number, timestamp, _bytes(key), _bytes(value), (), TimestampType.CREATE_TIME)
        for number, (key, value) in enumerate(records)
    ]
    log.append(RecordBatch.parse(encode_batch(encoded)))


def roll(log: Log) -> None:
    """Close the active segment of the log, and start a new one."""
    log.flush()
    with log.lock:
        log.roll()


def records_of(log: Log) -> list[Record]:
    """Return all records of the log, read from its segments."""
    return [record for segment in log.segments for record in read_records(segment.path.read_bytes())]


def batches_of(segment: Segment) -> list[tuple[int, Batch]]:
    """Return all batches of a segment, each with its position in the log file."""
    return [
        (position, parse_batch(segment.file.read(header.size, position)))
        for position, header in segment.batches(0, segment.size)
    ]


def checked_search(segment: Segment, offset: int) -> tuple[Search, int]:
    """Return the steps of a search in an offset index, and the position where the scan of the log begins.

    The function searches like `hmb index-inspect`. Raises AssertionError if the broker's own search finds another
    position.
    """
    found = search(segment.offset_index.path, offset)
    position = found.entry[1] if found.entry else 0
    if segment.offset_index.lookup(offset).position != position:
        raise AssertionError("the broker and the command `hmb index-inspect` find different index entries")
    return found, position


@contextmanager
def quiet() -> Iterator[None]:
    """Hide HMB's log messages in the `with` block.

    The program that makes a drawing may damage a log on purpose. Inside the `with` block, HMB logs no errors about this
    damage.
    """
    logger = logging.getLogger("hmb")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
