"""Tests of the log: reads return the appended records in order, with the offsets that the append assigned."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import Codec, Record, RecordBatch, encode_batch
from hmb.storage.cleanup import deletion
from hmb.storage.config import LogConfig
from tests.storage.conftest import LogMaker, batch, messages, produced, read_all, records


def test_offsets_continue_over_all_formats(open_log: LogMaker) -> None:
    log = open_log()
    formats = [
        batch(3),
        messages(2, 0),
        messages(4, 1),
        messages(3, 0, Codec.GZIP),
        messages(3, 1, Codec.GZIP),
        batch(1),
    ]
    base_offsets = [log.append(data).base_offset for data in formats]
    assert base_offsets == [0, 3, 5, 9, 12, 15]
    assert log.log_end_offset == 16
    assert [record.offset for record in read_all(log)] == list(range(16))


def test_a_batch_is_stored_unchanged_except_for_offset_and_epoch(open_log: LogMaker) -> None:
    log = open_log()
    log.append(batch(2))
    sent = batch(3, codec=Codec.ZSTD)
    log.append(sent)
    region = log.read(2, 1_000).records
    assert region is not None
    stored = region.read()
    assert stored[:8] == (2).to_bytes(8, "big")
    assert stored[12:16] == bytes(4)
    assert (stored[8:12], stored[16:]) == (sent.view[8:12], sent.view[16:])


def test_a_read_inside_a_batch_returns_it_whole(open_log: LogMaker) -> None:
    log = open_log()
    log.append(batch(10))
    region = log.read(7, 1).records
    assert region is not None and region.size == batch(10).size


def test_a_read_without_at_least_one_keeps_to_its_limit(open_log: LogMaker) -> None:
    log = open_log()
    log.append(batch(10))
    assert log.read(0, 10, at_least_one=False).records is None


@pytest.mark.parametrize("offset", [-1, 6])
def test_a_read_outside_of_the_log_is_out_of_range(open_log: LogMaker, offset: int) -> None:
    log = open_log()
    log.append(batch(5))
    assert log.read(5, 100).records is None
    with pytest.raises(KafkaError) as error:
        log.read(offset, 100)
    assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_every_offset_is_found_through_the_index_as_by_a_scan(open_log: LogMaker) -> None:
    log = open_log(segment_bytes=4_000, index_interval_bytes=150)
    for count in [1, 5, 2, 7, 1, 1, 30] * 20:
        log.append(batch(count))
    assert len(log.segments) > 5 and all(segment.offset_index.entries for segment in log.segments[:-1])
    ranges = {
        offset: (b.base_offset, segment)
        for segment in log.segments
        for _, b in segment.batches(0, segment.size)
        for offset in range(b.base_offset, b.last_offset + 1)
    }
    assert sorted(ranges) == list(range(log.log_end_offset))
    for offset, (base_offset, segment) in ranges.items():
        region = log.read(offset, 1).records
        assert region is not None and region.file is segment.file
        assert int.from_bytes(region.read()[:8], "big") == base_offset


def test_segments_roll_by_size_and_are_named_by_their_first_offset(open_log: LogMaker) -> None:
    log = open_log(segment_bytes=3 * batch(2).size)
    for _ in range(7):
        log.append(batch(2))
    assert [segment.path.name for segment in log.segments] == [f"{offset:020d}.log" for offset in (0, 6, 12)]
    assert [segment.size for segment in log.segments] == [3 * batch(2).size] * 2 + [batch(2).size]


def test_segments_roll_by_time_of_their_records(open_log: LogMaker) -> None:
    log = open_log(segment_ms=1_000)
    for timestamp in (5_000, 5_500, 6_000, 6_001, 7_001):
        log.append(batch(1, first_timestamp=timestamp))
    assert [segment.base_offset for segment in log.segments] == [0, 3]


def test_segments_roll_earlier_each_by_its_own_jitter(open_log: LogMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log draws a random jitter (ms) for each segment, and subtracts it from the segment's time limit.

    Without the jitter, logs that were created at the same time would all start new segments at the same time.
    """
    most: list[int] = []
    jitters = iter([300, 999, 0])

    def randrange(end: int) -> int:
        most.append(end)
        return next(jitters)

    monkeypatch.setattr("random.randrange", randrange)
    log = open_log(segment_ms=1_000, segment_jitter_ms=5_000)
    for timestamp in (5_000, 5_700, 5_701, 5_702, 5_703):
        log.append(batch(1, first_timestamp=timestamp))
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]
    assert most == [1_000] * 3  # The jitter is never greater than segment.ms.
    lag = LogConfig(segment_jitter_ms=5_000, max_compaction_lag_ms=70, cleanup_policy="compact")
    monkeypatch.setattr("random.randrange", lambda end: end)
    assert lag.draw_jitter_ms() == 70


def test_a_compacted_log_rolls_in_time_for_its_last_segment_to_be_compacted(open_log: LogMaker) -> None:
    log = open_log(segment_ms=1_000, max_compaction_lag_ms=100, cleanup_policy="compact")
    for timestamp in (5_000, 5_100, 5_101):
        log.append(RecordBatch.parse(encode_batch([Record(0, timestamp, b"k", b"v")])))
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_time_look_ups_find_the_first_record_at_or_after(open_log: LogMaker) -> None:
    log = open_log(segment_bytes=2_000, index_interval_bytes=100)
    for number in range(60):
        log.append(batch(3, first_timestamp=number * 10))  # The timestamps of the three records differ by 1 ms.
    for timestamp in range(593):
        number, rest = divmod(timestamp, 10)
        expected = (timestamp, number * 3 + rest) if rest < 3 else ((number + 1) * 10, (number + 1) * 3)
        assert log.offset_for_timestamp(timestamp) == expected
    assert log.offset_for_timestamp(593) is None
    assert log.offset_for_timestamp(None) == (592, 179)


def test_a_log_without_timestamps_has_no_newest_record(open_log: LogMaker) -> None:
    log = open_log()
    assert log.offset_for_timestamp(None) is None
    log.append(messages(3, 0))
    assert log.offset_for_timestamp(None) is None


def test_log_append_time_is_the_brokers_clock(open_log: LogMaker) -> None:
    log = open_log(message_timestamp_type="LogAppendTime")
    results = [log.append(batch(2)), log.append(messages(2, 1))]
    times = {result.log_append_time for result in results}
    assert {record.timestamp for record in read_all(log)} == times
    assert min(times) > max(record.timestamp for record in records(2))


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", ErrorCode.CORRUPT_MESSAGE),
        (b"short", ErrorCode.CORRUPT_MESSAGE),
        (bytes(batch(2).view)[:-1], ErrorCode.CORRUPT_MESSAGE),
        (bytes(batch(2).view)[:-1] + b"?", ErrorCode.CORRUPT_MESSAGE),
        (bytes(batch(2).view)[:16] + b"\x07" + bytes(batch(2).view)[17:], ErrorCode.CORRUPT_MESSAGE),
        (bytes(messages(2))[:-1] + b"?", ErrorCode.CORRUPT_MESSAGE),
        (bytes(messages(2))[:-1], ErrorCode.CORRUPT_MESSAGE),
        (bytes(batch(2, control=True).view), ErrorCode.INVALID_RECORD),
        (bytes(batch(1, size=2_000).view), ErrorCode.MESSAGE_TOO_LARGE),
        (bytes(messages(40)) + bytes(messages(1)), None),  # The limit applies to each message, not to the whole set.
    ],
)
def test_a_batch_that_is_not_valid_is_refused_and_changes_nothing(
    open_log: LogMaker, data: bytes, code: ErrorCode | None
) -> None:
    log = open_log(max_message_bytes=1_000)
    log.append(batch(1))
    if code is None:
        assert log.append(produced(data)).last_offset == 41
        return
    with pytest.raises(KafkaError) as error:
        log.append(produced(data))
    assert error.value.code is code
    assert (log.log_end_offset, log.size) == (1, batch(1).size)


def test_a_failed_write_leaves_no_trace(open_log: LogMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log()
    log.append(batch(1))
    size = log.size

    def full_disk(fd: int, parts: list[bytes], offset: int) -> int:
        os.pwrite(fd, b"half a batch", offset)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", full_disk)
        with pytest.raises(KafkaError) as error:
            log.append(batch(1))
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.segments[0].path.stat().st_size == size
    assert log.append(batch(1)).base_offset == 1  # After space was freed, an append succeeds.


def test_after_a_failed_sync_nothing_is_acked_any_more(open_log: LogMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log()
    log.append(batch(1))

    def broken_disk(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", broken_disk)
        with pytest.raises(KafkaError):
            log.flush()
    for attempt in (log.flush, lambda: log.append(batch(1))):  # The log never repeats a failed sync.
        with pytest.raises(KafkaError) as error:
            attempt()
        assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_waiting_flushes_share_a_sync(open_log: LogMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log()
    syncs: list[int] = []
    monkeypatch.setattr(os, "fdatasync", syncs.append)
    log.append(batch(1))
    log.append(batch(1))
    log.flush()
    log.flush()  # The previous sync already covered all appends.
    assert len(syncs) == 1


def test_watchers_are_notified_of_appends(open_log: LogMaker) -> None:
    from hmb.storage.watchers import Watcher

    log, watcher = open_log(), Watcher()
    log.watchers.add(watcher)
    log.append(batch(1))
    watcher.wait(60)  # The append has already notified the watcher, so the wait ends at once.
    log.watchers.discard(watcher)
    log.append(batch(1))


def test_a_closed_log_deletes_nothing_that_could_not_be_written_down(open_log: LogMaker) -> None:
    log = open_log()
    log.append(batch(3))
    log.close()
    with pytest.raises(KafkaError) as refused:
        deletion.delete_records(log, 2)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert log.log_start_offset == 0


def test_a_log_does_not_roll_if_the_new_file_cannot_be_created(
    open_log: LogMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the log cannot create the file of a new segment, the append fails, and the log keeps its active segment.

    Before a bug was fixed, the log used the new segment although the segment had no file. Compaction then treated the
    old segment as closed. After a crash, the last batch of the old segment was lost.
    """
    log = open_log(segment_bytes=100)
    log.append(batch(1))
    open_ = os.open

    def full_disk(path: Path, flags: int, *mode: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, "No space left on device")
        return open_(path, flags, *mode)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", full_disk)
        for _ in range(2):
            with pytest.raises(KafkaError, match="No space left"):
                log.append(batch(1))
            assert len(log.segments) == 1
    assert log.append(batch(1)).base_offset == 1
    assert [segment.path.exists() for segment in log.segments] == [True, True]
    assert len(read_all(log)) == 2
