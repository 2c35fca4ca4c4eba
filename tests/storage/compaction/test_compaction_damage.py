"""Tests of compaction with batches that cannot be read: the log keeps these batches, and also all readable records."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import (
    LOG_OVERHEAD,
    RECORD_BATCH_OVERHEAD,
    Batch,
    Codec,
    Record,
    RecordBatch,
    crc32c,
    encode_batch,
)
from hmb.records.batch import CRC_START, HEADER
from hmb.records.filtering import MAX_BATCH_RECORDS
from hmb.records.record import encode_records
from hmb.storage.compaction.cleaner import LogToClean, clean
from hmb.storage.log import Log
from hmb.storage.segment import Segment
from tests.storage.compaction.test_compaction import CONFIG, NO_LIMIT, change_batch, compact, fill


@pytest.fixture
def log(directory: Path) -> Log:
    return Log(directory, CONFIG, clean=True)


def batch_around(content: bytes, count: int, codec: Codec = Codec.NONE) -> RecordBatch:
    """Return a batch with a correct header and CRC. Instead of records, the batch contains the bytes `content`."""
    header = encode_batch([Record(0, 1_000, b"k")] * count)[:RECORD_BATCH_OVERHEAD]
    fields = list(HEADER.unpack(header))
    fields[1], fields[5] = RECORD_BATCH_OVERHEAD - LOG_OVERHEAD + len(content), codec
    data = bytearray(HEADER.pack(*fields) + content)
    data[CRC_START - 4 : CRC_START] = crc32c(data[CRC_START:]).to_bytes(4, "big")
    return RecordBatch.parse(data)


def batches_in(segment: Segment) -> list[tuple[int, Batch]]:
    return list(segment.batches(0, segment.size))


def readable_records(log: Log) -> list[Record]:
    found: list[Record] = []
    for segment in log.segments:
        for position, batch in batches_in(segment):
            with contextlib.suppress(KafkaError):
                found += segment.whole(position, batch).records(4_000)
    return found


def test_a_header_key_that_is_not_utf_8_does_not_stop_compaction(log: Log) -> None:
    """The cleaner can compact a tombstone whose header key is not valid UTF-8.

    Before a bug was fixed, the cleaner decoded the headers of each tombstone, and therefore failed.
    """
    record = b"\0" + b"\0" + b"\0" + b"\x02k" + b"\x01" + b"\x02" + b"\x02\xff" + b"\x01"
    log.append(batch_around(bytes([2 * len(record)]) + record, 1))
    fill(log)
    assert compact(log) == log.segments[-1].base_offset
    _, first = batches_in(log.segments[0])[0]
    assert isinstance(first, RecordBatch)
    assert (first.base_offset, first.delete_horizon) == (0, CONFIG.delete_retention_ms)
    work = LogToClean(log.segments[:-1], 0, log.segments[-1].base_offset)
    clean(log, work, max_memory=1_000_000, now=CONFIG.delete_retention_ms, throttle=NO_LIMIT)
    assert 0 not in [batch.base_offset for segment in log.segments for _, batch in batches_in(segment)]


UNREADABLE = {
    "wrong lengths": lambda: batch_around(b"\x99\x01" * 30, 1),
    "no gzip": lambda: batch_around(b"not compressed at all", 1, Codec.GZIP),
    "too large": lambda: RecordBatch.parse(encode_batch([Record(0, 1_000, b"k", bytes(5_000))], codec=Codec.GZIP)),
    "too many": lambda: batch_around(
        encode_records([Record(0, 1_000, b"k")] * (MAX_BATCH_RECORDS + 1), None, 1_000), MAX_BATCH_RECORDS + 1
    ),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_log_is_compacted_although_one_batch_cannot_be_read(
    directory: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The cleaner compacts a log although one of its batches cannot be read.

    A log can contain an unreadable batch for two reasons. The broker accepts the batch while the topic's
    `cleanup.policy` is `delete`, because it then does not check the keys of the records. Or another broker, with higher
    limits for the records in a batch, wrote the batch.
    """
    sent = UNREADABLE[kind]()
    config = replace(CONFIG, max_decompressed=4_000, max_message_bytes=1 << 22)
    log = Log(directory, replace(config, cleanup_policy="delete"), clean=True)
    log.append(change_batch([(b"key 1", b"first"), (b"gone", b"old")]))
    base_offset = log.append(sent).base_offset
    log.append(change_batch([(b"gone", None)]))
    fill(log)
    log.reconfigure(config)
    first_dirty = compact(log)
    assert first_dirty == log.segments[-1].base_offset
    assert caplog.text.count(f", offsets {base_offset} to ") == 1
    found = [(at, segment, batch) for segment in log.segments for at, batch in batches_in(segment)]
    ((position, segment, batch),) = [each for each in found if each[2].base_offset == base_offset]
    assert segment.whole(position, batch).view[16:] == sent.view[16:]  # The bytes after the leader epoch are unchanged.
    keys = [record.key for record in readable_records(log) if record.offset < first_dirty]
    assert keys.count(b"key 1") == 1
    # The tombstone must stay as long as the unreadable batch, because that batch may contain an older value of its key.
    work = LogToClean(log.segments[:-1], 0, first_dirty)
    clean(log, work, max_memory=1_000_000, now=2 * CONFIG.delete_retention_ms, throttle=NO_LIMIT)
    assert [record.value for record in readable_records(log) if record.key == b"gone"] == [None]


def test_a_damaged_batch_is_never_written_again(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    """Compaction fails if a batch is damaged, and changes no file.

    If it wrote a new CRC for this batch, nobody could find the damage afterwards.
    """
    fill(log)
    before = [segment.path.read_bytes() for segment in log.segments]
    segment = log.segments[1]
    for place in range(21, 61):
        changed = bytearray(before[1])
        changed[place] ^= 0x10
        segment.file.write([changed], 0)
        with pytest.raises(KafkaError) as error:
            compact(log)
        assert error.value.code is ErrorCode.CORRUPT_MESSAGE
        assert [each.path.read_bytes() for each in log.segments] == [before[0], bytes(changed), *before[2:]]
    assert caplog.text.count(f"{segment.path}, position 0, offsets ") == 1
    segment.file.write([before[1]], 0)
    assert compact(log) == log.segments[-1].base_offset
