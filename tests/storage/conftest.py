"""Functions and fixtures that make batches and logs for the storage tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from hmb.protocol.topics import TopicPartition
from hmb.records import (
    Codec,
    Record,
    RecordBatch,
    TimestampType,
    encode_batch,
    encode_message_set,
    iter_batches,
    parse_batch,
    read_records,
)
from hmb.storage.batches.validation import ProducedRecords
from hmb.storage.config import LogConfig
from hmb.storage.log import Log
from hmb.storage.log_manager import LogManager

LogMaker = Callable[..., Log]


def records(count: int, *, first_timestamp: int = 1_000, size: int = 20) -> list[Record]:
    return [
        Record(i, first_timestamp + i, None, f"{i}".encode().ljust(size, b"."), (), TimestampType.CREATE_TIME)
        for i in range(count)
    ]


def batch(count: int = 1, **options: object) -> RecordBatch:
    """Return a record batch as a producer sends it."""
    record_options = {name: options.pop(name) for name in ("first_timestamp", "size") if name in options}
    return RecordBatch.parse(encode_batch(records(count, **record_options), **options))  # type: ignore[arg-type]


def messages(count: int = 1, magic: int = 0, codec: Codec = Codec.NONE) -> memoryview:
    """Return a message set as an old producer sends it."""
    return memoryview(encode_message_set(records(count), magic, codec))


def produced(data: bytes | bytearray) -> ProducedRecords:
    """Convert the bytes of a record batch, or of old messages (v0 or v1), to the type that `Log.append` requires."""
    first = parse_batch(data)
    return first if isinstance(first, RecordBatch) else memoryview(data)


def read_all(log: Log, max_bytes: int = 1_000_000) -> list[Record]:
    """Return every record of a log.

    Read repeatedly, as a consumer does: each read begins after the last offset of the previous one.
    """
    found: list[Record] = []
    offset = log.log_start_offset
    while region := log.read(offset, max_bytes).records:
        data = region.read()
        found += [record for record in read_records(data) if record.offset >= offset]
        offset = list(iter_batches(data))[-1].last_offset + 1  # Compaction may have removed the batch's last records.
    return found


def delete(logs: LogManager, name: TopicPartition) -> None:
    """Delete a log, and remove its files."""
    for path in logs.delete({name: uuid4()}).left:
        shutil.rmtree(path)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "events-0"
    path.mkdir()
    return path


@pytest.fixture
def open_log(directory: Path) -> LogMaker:
    def open_log(*, clean: bool = True, recovery_point: int | None = 0, **config: object) -> Log:
        return Log(directory, LogConfig(**config), recovery_point=recovery_point, clean=clean)  # type: ignore[arg-type]

    return open_log
