"""Tests of the steps before an append: the check of timestamps, the topic's codec, and the assignment of offsets."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import (
    AssignedMessages,
    Codec,
    Message,
    Record,
    RecordBatch,
    TimestampType,
    encode_batch,
    encode_message_set,
    iter_batches,
    parse_batch,
    read_records,
)
from hmb.records.batch import wrap_records
from hmb.records.changed_batch import with_records
from hmb.records.filtering import MAX_BATCH_RECORDS
from hmb.records.partial_records import PartialRecord, partial_records
from hmb.records.record import encode_records
from hmb.storage.batches import messages as old_messages
from hmb.storage.batches import validation
from hmb.storage.batches.validation import MAX_ERRORS, InvalidRecords, ProducedRecords
from hmb.storage.config import CODECS, LogConfig
from hmb.storage.log import Log
from hmb.units import HOUR_MS
from tests.storage.conftest import batch, messages, produced, read_all

NOW = 1_700_000_000_000
LATEST = NOW + HOUR_MS
OLD_CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
LogAtNow = Callable[..., Log]


@pytest.fixture
def log_at_now(directory: Path) -> LogAtNow:
    return lambda **config: Log(directory, LogConfig(**config), clean=True, clock=lambda: NOW)


def at(*timestamps: int, key: bytes | None = b"k") -> list[Record]:
    return [Record(offset, timestamp, key, b"value") for offset, timestamp in enumerate(timestamps)]


def refused(log: Log, data: bytes) -> dict[int, str]:
    end = log.log_end_offset
    with pytest.raises(InvalidRecords) as error:
        log.append(produced(data))
    assert error.value.code is ErrorCode.INVALID_TIMESTAMP
    assert log.log_end_offset == end
    return dict(error.value.errors)


def stored(log: Log) -> bytes:
    region = log.read(log.log_start_offset, 1 << 20).records
    return region.read() if region else b""


@pytest.mark.parametrize("codec", Codec)
def test_records_of_the_far_future_are_refused_with_their_places(log_at_now: LogAtNow, codec: Codec) -> None:
    """The log refuses records with timestamps far in the future, and the error lists their positions in the batch.

    Retention by time deletes a segment when its newest timestamp is old. With a timestamp in the year 3000, retention
    would keep the segment until then.
    """
    log = log_at_now()
    errors = refused(log, encode_batch(at(NOW, LATEST + 1, -1, LATEST, 2**62), codec=codec))
    assert errors.keys() == {1, 4}
    assert errors[1] == (
        f"Timestamp {LATEST + 1} of message with offset 1 is out of range. "
        f"The timestamp should be within [{NOW - (2**63 - 1)}, {LATEST}]"
    )
    log.append(RecordBatch.parse(encode_batch(at(0, LATEST, -1), codec=codec)))


def test_old_messages_of_the_far_future_are_refused_also_in_wrappers(log_at_now: LogAtNow) -> None:
    log = log_at_now()
    for codec in OLD_CODECS:
        data = encode_message_set(at(NOW, LATEST + 1), 1, codec)
        assert refused(log, data).keys() == {1}
        log.append(memoryview(encode_message_set(at(NOW, LATEST + 1), 0, codec)))  # message format v0 has no timestamps


def test_records_that_are_too_old_are_refused_at_any_position(log_at_now: LogAtNow) -> None:
    """The log refuses a batch if any of its records is too old.

    The header contains only the newest timestamp, so the log must read each record.
    """
    log = log_at_now(message_timestamp_before_max_ms=1_000, message_timestamp_after_max_ms=2**63 - 1)
    for data in (
        encode_batch(at(NOW, NOW - 1_001, NOW - 1_000, -1, 2**62, 7)),
        encode_message_set(at(NOW, NOW - 1_001, NOW - 1_000, -1, 2**62, 7), 1),
    ):
        assert refused(log, data).keys() == {1, 5}
    log.append(RecordBatch.parse(encode_batch(at(-1, NOW - 1_000, NOW))))


def test_where_the_broker_sets_the_time_the_producers_do_not_matter(log_at_now: LogAtNow) -> None:
    log = log_at_now(message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=0)
    for data in (encode_batch(at(5, 2**62)), encode_message_set(at(5, 2**62), 1)):
        assert log.append(produced(data)).log_append_time == NOW
    assert {record.timestamp for record in read_all(log)} == {NOW}


def test_a_missing_key_and_a_wrong_timestamp_are_reported_together(log_at_now: LogAtNow) -> None:
    log = log_at_now(cleanup_policy="compact")
    records = [Record(0, NOW, None), Record(1, LATEST + 1, b"k"), Record(2, LATEST + 1, None), Record(3, NOW, b"k")]
    errors = refused(log, encode_batch(records))
    assert errors.keys() == {0, 1, 2}
    assert errors[0] == errors[2] == "a record of a compacted topic needs a key"


@pytest.mark.parametrize("config", [{}, {"cleanup_policy": "compact"}, {"message_timestamp_before_max_ms": 1_000}])
def test_one_small_batch_named_a_million_errors(log_at_now: LogAtNow, config: dict[str, object]) -> None:
    """An error names a limited number of wrong records of a batch.

    Before a bug was fixed, it named all 1.25 million records of a compressed batch of 1 MB. The check took 9 s and 1 GB
    of memory, and the response had 182 MB.
    """
    key = b"k" if "cleanup_policy" not in config else None
    data = many_records(5 * MAX_BATCH_RECORDS, LATEST + 1, key)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRecords) as error:
            log_at_now(**config).append(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error.value.errors.keys() == set(range(MAX_ERRORS))
    assert peak < 20 << 20  # a little more than the size of the decompressed batch


def many_records(count: int, timestamp: int, key: bytes | None) -> RecordBatch:
    content = encode_records([Record(0, timestamp, key)] * count, None, timestamp)
    return RecordBatch.parse(wrap_records(content, count, timestamp, timestamp, Codec.ZSTD))


def test_the_check_of_a_batch_is_limited(log_at_now: LogAtNow, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compacted log refuses a batch that has more than MAX_BATCH_RECORDS records.

    In a compacted log, each record must have a key. To check the keys, the log reads each record, which takes time.
    """
    monkeypatch.setattr(validation, "MAX_BATCH_RECORDS", 1_000)
    read = 0

    def counted(*arguments: object) -> Iterator[PartialRecord]:
        nonlocal read
        for record in partial_records(*arguments):  # type: ignore[arg-type]
            read += 1
            yield record

    monkeypatch.setattr(validation, "partial_records", counted)
    log = log_at_now(cleanup_policy="compact")
    with pytest.raises(KafkaError, match="2000 records in a batch") as error:
        log.append(many_records(2_000, NOW, b"k"))
    assert error.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert read == 1_000
    log.append(many_records(1_000, NOW, b"k"))
    log_at_now().append(many_records(2_000, NOW, None))  # This log is not compacted, so it does not check each record.


def test_the_newest_of_very_many_records_is_refused_though_it_is_not_named(
    log_at_now: LogAtNow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation, "MAX_BATCH_RECORDS", 1_000)
    count = 2_000
    content = encode_records([*[Record(0, NOW)] * (count - 1), Record(0, LATEST + 1)], None, NOW)
    with pytest.raises(KafkaError) as error:
        log_at_now().append(produced(wrap_records(content, count, NOW, LATEST + 1, Codec.ZSTD)))
    assert error.value.code is ErrorCode.INVALID_TIMESTAMP


def test_old_messages_are_counted_too(log_at_now: LogAtNow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "MAX_BATCH_RECORDS", 1_000)
    data = encode_message_set(at(NOW) * 1_001, 1, Codec.GZIP)
    # Both settings require that the broker reads each message.
    for config in ({"cleanup_policy": "compact"}, {"compression_type": "lz4"}):
        with pytest.raises(KafkaError) as error:
            log_at_now(**config).append(produced(data))
        assert error.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_a_header_may_not_be_newer_than_its_records(log_at_now: LogAtNow) -> None:
    """The log refuses a batch whose header contains a newer timestamp than its records.

    Retention and the time index use the timestamp of the header, so a wrong one would affect both.
    """
    fresh = RecordBatch.parse(encode_batch(at(NOW)))
    lie = with_records(fresh, fresh.uncompressed(), 1, max_timestamp=2**62)
    with pytest.raises(KafkaError, match="no record has the batch's max timestamp") as error:
        log_at_now().append(produced(lie))
    assert error.value.code is ErrorCode.INVALID_TIMESTAMP


def test_a_batch_in_range_is_not_opened(log_at_now: LogAtNow, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object) -> bytes:
        raise AssertionError("the broker decompressed the batch")

    monkeypatch.setattr(RecordBatch, "uncompressed", opened)
    log_at_now(compression_type="gzip").append(RecordBatch.parse(encode_batch(at(0, LATEST), codec=Codec.GZIP)))


@pytest.mark.parametrize("sent", Codec)
@pytest.mark.parametrize("compression_type", CODECS)
def test_batches_are_kept_in_the_topic_s_codec(log_at_now: LogAtNow, compression_type: str, sent: Codec) -> None:
    log = log_at_now(compression_type=compression_type)
    records = [Record(n, NOW + n, b"k%d" % n, b"v" * 50, (("h", b"1"),)) for n in range(5)]
    data = encode_batch(records, codec=sent, producer_id=7, producer_epoch=2, base_sequence=0)
    assert log.append(produced(data)).base_offset == 0
    assert log.append(produced(data)).base_offset == 0  # the log still recognizes the producer's duplicate
    log.append(RecordBatch.parse(encode_batch(records, codec=sent, producer_id=7, producer_epoch=2, base_sequence=5)))
    first, second = iter_batches(stored(log))
    first.check()
    assert first.codec is second.codec is CODECS[compression_type]
    assert list(first.records()) == records
    assert (second.producer_id, second.producer_epoch, second.base_sequence) == (7, 2, 5)
    assert (second.base_offset, second.last_offset, second.max_timestamp) == (5, 9, NOW + 4)


def test_a_batch_in_the_topic_s_codec_is_stored_unchanged(log_at_now: LogAtNow) -> None:
    log = log_at_now(compression_type="gzip")
    for data in (batch(3, codec=Codec.GZIP).view, messages(3, 1, Codec.GZIP), messages(2, 0, Codec.GZIP)):
        end = len(stored(log))
        log.append(produced(data))
        # A v0 wrapper may change, because it contains offsets.
        assert stored(log)[end + 17 :] == data[17:] or data[16] == 0


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("sent", OLD_CODECS)
@pytest.mark.parametrize("compression_type", CODECS)
def test_old_messages_in_another_codec_become_a_batch(
    log_at_now: LogAtNow, compression_type: str, sent: Codec, magic: int
) -> None:
    log = log_at_now(compression_type=compression_type)
    log.append(batch(2, first_timestamp=NOW))
    data = encode_message_set(at(NOW, NOW + 1), magic, sent)
    result = log.append(produced(data + data))
    assert (result.base_offset, result.last_offset) == (2, 5)
    read = [record for record in read_all(log) if record.offset >= 2]
    assert [record.value for record in read] == [b"value"] * 4
    assert [record.timestamp for record in read] == ([NOW, NOW + 1] * 2 if magic else [-1] * 4)
    kept = list(iter_batches(stored(log)))[1:]
    assert {each.codec for each in kept} == {CODECS[compression_type]}
    assert all(isinstance(each, Message) == (sent is CODECS[compression_type]) for each in kept)


@pytest.mark.parametrize("data", [batch(2), messages(2, 1), messages(2, 0)])
def test_the_broker_s_time_and_the_topic_s_codec_go_together(log_at_now: LogAtNow, data: ProducedRecords) -> None:
    log = log_at_now(compression_type="zstd", message_timestamp_type="LogAppendTime")
    assert log.append(data).log_append_time == NOW
    (kept,) = iter_batches(stored(log))
    kept.check()
    assert (kept.codec, kept.max_timestamp, kept.timestamp_type) == (Codec.ZSTD, NOW, TimestampType.LOG_APPEND_TIME)
    assert {record.timestamp for record in kept.records()} == {NOW}


def test_a_batch_that_grows_too_large_when_it_is_uncompressed_is_refused(log_at_now: LogAtNow) -> None:
    log = log_at_now(compression_type="uncompressed", max_message_bytes=1_000)
    for data in (bytes(batch(2, size=1_000, codec=Codec.GZIP).view), encode_message_set(at(NOW) * 100, 1, Codec.GZIP)):
        assert len(data) <= 1_000
        with pytest.raises(KafkaError) as error:
            log.append(produced(data))
        assert error.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert log.log_end_offset == 0


@pytest.mark.parametrize(
    ("config", "data"),
    [
        ({}, messages(40, 1, Codec.GZIP)),
        ({"cleanup_policy": "compact"}, batch(40, codec=Codec.GZIP)),
        ({"message_timestamp_before_max_ms": 2**62}, batch(40, codec=Codec.GZIP)),
        ({"compression_type": "lz4"}, batch(40, codec=Codec.GZIP)),
    ],
)
def test_nothing_is_decompressed_beyond_the_broker_s_limit(
    log_at_now: LogAtNow, config: dict[str, object], data: ProducedRecords
) -> None:
    """The log respects the setting max.decompressed.message.bytes.

    Before a bug was fixed, the log always used a limit of 32 MiB.
    """
    with pytest.raises(KafkaError) as error:
        log_at_now(**config, max_decompressed=1_000).append(data)
    assert error.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", OLD_CODECS)
def test_old_messages_get_later_offsets_after_a_faster_append(
    log_at_now: LogAtNow, monkeypatch: pytest.MonkeyPatch, magic: int, codec: Codec
) -> None:
    """The log decompresses old messages before it takes its lock, so another append may take the lock first.

    Before a bug was fixed, the log decompressed under the lock. For a message set of 100,000 compressed messages, it
    held the lock for 1.8 s.
    """
    log, assign = log_at_now(), old_messages.assign_offsets

    def assign_slowly(*args: object, **options: object) -> AssignedMessages:
        assigned = assign(*args, **options)  # type: ignore[arg-type]
        log.append(batch(3, first_timestamp=NOW))  # Another producer appends, because the log's lock is free.
        return assigned

    monkeypatch.setattr(old_messages, "assign_offsets", assign_slowly)
    sent = encode_message_set(at(NOW, NOW), magic) + encode_message_set(at(NOW, NOW + 9, NOW), magic, codec)
    result = log.append(produced(sent))
    assert (result.base_offset, result.last_offset) == (3, 7)
    assert [record.offset for record in read_all(log)] == list(range(8))
    late = [record for record in read_records(stored(log)) if record.offset >= 3]
    assert [record.value for record in late] == [b"value"] * 5
    is_message = isinstance(parse_batch(stored(log), batch(3, first_timestamp=NOW).size), Message)
    # Compressed messages in format v0 become a batch, because they contain offsets.
    assert is_message == (magic == 1 or codec is Codec.NONE)
    assert log.offset_for_timestamp(None) == ((NOW + 9, 6) if magic else (NOW + 2, 2))
