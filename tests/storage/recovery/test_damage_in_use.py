"""Tests of damage to the files of a running broker: the broker reports it at the next read, and readers can skip it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import RecordBatch, encode_batch, iter_batches
from hmb.storage.config import LogConfig
from hmb.storage.files.together import release
from hmb.storage.log import Log
from hmb.storage.recovery.read_checks import OFFSETS_KEPT, RepeatedReads
from hmb.units import now_ms
from tests.storage.conftest import LogMaker, batch, read_all, records
from tests.storage.data_directory import DataDirectory
from tests.storage.transactions import ABORT, COMMIT, Writer, committed_offsets

SIZE = batch(2).size
CONFIG = LogConfig(segment_bytes=4 * SIZE)


@pytest.fixture
def data(tmp_path: Path) -> DataDirectory:
    return DataDirectory(tmp_path / "data", CONFIG)


def filled(data: DataDirectory, batches: int = 10) -> Log:
    log = data.start()
    for _ in range(batches):
        log.append(batch(2))
    log.flush()
    return log


def overwrite(path: Path, position: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(content)


def consume(log: Log, limit: int = 60) -> list[int]:
    """Read the log like a client that fetches a batch again if the CRC of the batch is wrong.

    Return the offsets of all intact records.
    """
    found: list[int] = []
    offset = log.log_start_offset
    for _ in range(limit):
        if offset >= log.log_end_offset:
            return found
        region = log.read(offset, 10_000).records
        assert region is not None, f"nothing at {offset}"
        try:
            for each in iter_batches(region.read()):
                each.check()
                found += [record.offset for record in each.records() if record.offset >= offset]
                offset = each.last_offset + 1
        except KafkaError:
            continue
    raise AssertionError(f"a reader hangs at {offset}")


FIELDS = {"payload": 80, "length": 9, "magic": 16, "crc": 17, "count": 60}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("number", [0, 1, 3, 4, 7, 8, 9])
def test_a_reader_of_a_running_broker_gets_past_a_damaged_batch(
    data: DataDirectory, caplog: pytest.LogCaptureFixture, number: int, field: str
) -> None:
    """If a batch is damaged while the broker runs, a reader still gets the records after this batch.

    Before a bug was fixed, the reader could not read these records. The log has ten batches in three segments.
    """
    log = filled(data)
    path = log.segments[number // 4].path
    position = number % 4 * SIZE
    overwrite(path, position + FIELDS[field], b"\x51")
    is_restored = field in ("length", "magic")
    expected = [offset for offset in range(20) if is_restored or offset // 2 != number]
    assert consume(log) == expected
    assert caplog.text.count(f"{path}, position {position}: ") == 1
    assert log.append(batch(1)).base_offset == 20
    assert consume(log) == [*expected, 20]
    data.stop()
    caplog.clear()
    log = data.start()
    assert (consume(log), log.log_end_offset) == ([*expected, 20], 21)
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


@pytest.mark.parametrize("left", [0, 10, SIZE, 3 * SIZE - 1])
@pytest.mark.parametrize("number", [0, 1])
def test_a_closed_segment_that_is_cut_while_it_is_read(data: DataDirectory, number: int, left: int) -> None:
    log = filled(data)
    os.truncate(log.segments[number].path, left)
    intact = left // SIZE * 2
    lost = range(8 * number + intact, 8 * number + 8)
    assert consume(log) == [offset for offset in range(20) if offset not in lost]


def test_a_closed_segment_that_was_removed(data: DataDirectory, caplog: pytest.LogCaptureFixture) -> None:
    log = filled(data)
    path = log.segments[1].path
    release(log.segments[1].files)
    path.unlink()
    assert consume(log) == [*range(8), *range(16, 20)]
    assert str(path) in caplog.text


def test_an_empty_batch_takes_the_place_of_a_segment_that_was_removed(data: DataDirectory) -> None:
    log = filled(data)
    log.segments[1].path.unlink()
    release(log.segments[1].files)
    consume(log)
    (empty,) = iter_batches(log.segments[1].path.read_bytes())
    assert (empty.base_offset, empty.last_offset, empty.records_count) == (8, 15, 0)


def test_a_wrong_offset_is_not_sent(open_log: LogMaker) -> None:
    """The broker does not send a batch whose header contains a wrong base offset.

    A client would continue after the wrong offset, and skip the records below it.
    """
    log = open_log(segment_bytes=4 * SIZE)
    for _ in range(6):
        log.append(batch(2))
    overwrite(log.segments[0].path, SIZE + 4, b"\1")
    region = log.read(2, 1).records
    assert region is not None
    assert next(iter_batches(region.read())).base_offset == 2


def test_transactions_stay_as_they_are_in_a_repaired_segment(data: DataDirectory) -> None:
    log = data.start(LogConfig(segment_ms=2**40))
    writer = Writer(log, 7)
    for number, marker in enumerate((COMMIT, ABORT, ABORT, COMMIT)):
        writer.write(2, first_timestamp=10**12 + number)
        writer.end(marker)
        log.append(batch(1, first_timestamp=10**12))
    expected = committed_offsets(log)
    at = log.segments[0].size
    log.append(batch(1))
    log.append(batch(1))
    overwrite(log.segments[0].path, at + 70, b"\x51")
    assert consume(log)[-1] == log.log_end_offset - 1
    assert len(log.segments) == 2
    assert committed_offsets(log) == [*expected, log.log_end_offset - 1]
    data.kill()
    assert committed_offsets(data.start()) == [*expected, log.log_end_offset - 1]


def test_healthy_readers_are_not_slowed_down_by_checks() -> None:
    reads = RepeatedReads()
    assert not any(reads.is_due(offset) for offset in range(1_000))
    assert [reads.is_due(5_000) for _ in range(16)].count(True) == 4  # A check is due at reads 2, 4, 8 and 16.
    assert [reads.is_due(6_000) for _ in range(15)].count(True) == 3
    for offset in range(OFFSETS_KEPT):
        reads.is_due(offset)
    # `reads` counts the reads at OFFSETS_KEPT offsets only, so it has deleted the count of offset 6000. With the old
    # count, the next read would be the 16th, and a check would be due.
    assert not reads.is_due(6_000)
    assert not reads.is_due(5_000)


# -- damage to indexes


def test_a_flipped_bit_in_a_time_index_hides_no_records(open_log: LogMaker, caplog: pytest.LogCaptureFixture) -> None:
    """One flipped bit in a time index does not change the result of a search by time.

    Before a bug was fixed, one search returned offset 78 instead of 21.
    """
    log = open_log(index_interval_bytes=100)
    for number in range(60):
        log.append(batch(2, first_timestamp=1_000 + 10 * number))
    log.close()
    path = log.segments[0].path.with_suffix(".timeindex")
    good = path.read_bytes()
    for position in range(len(good) - 12):  # The last entry is left out, because the broker checks it at each start.
        for bit in range(0, 8, 3):
            overwrite(path, 0, good)
            overwrite(path, position, bytes([good[position] ^ 1 << bit]))
            reopened = open_log(clean=True, index_interval_bytes=100)
            for number in range(0, 60, 7):
                found = reopened.offset_for_timestamp(1_000 + 10 * number)
                assert found == (1_000 + 10 * number, 2 * number)
    overwrite(path, 0, good)
    overwrite(path, 11, b"\x7f")
    caplog.clear()
    reopened = open_log(clean=True, index_interval_bytes=100)
    for _ in range(2):
        assert [reopened.offset_for_timestamp(1_000 + number) for number in range(0, 600, 10)][-1] == (1_590, 118)
    assert caplog.text.count(f"{path} is damaged") == 1
    open_log(clean=True, index_interval_bytes=100).close()
    assert path.read_bytes() == good


def empty(path: Path) -> None:
    os.truncate(path, 0)


def fill_with_zeros(path: Path) -> None:
    overwrite(path, 0, bytes(path.stat().st_size))


def transactions(open_log: LogMaker) -> Log:
    """Return a log of one segment with 20 transactions of one record each. Every second transaction is aborted."""
    log = open_log(index_interval_bytes=100)
    writer = Writer(log, 7)
    for number in range(20):
        # If the record were much older than the transaction marker, the log would begin a new segment for the marker.
        writer.write(1, first_timestamp=now_ms())
        writer.end(ABORT if number % 2 else COMMIT)
    log.flush()
    assert len(log.segments) == 1
    return log


@pytest.mark.parametrize("damage", [Path.unlink, empty, fill_with_zeros])
@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
def test_no_index_of_a_running_broker_is_needed(
    open_log: LogMaker, suffix: str, damage: Callable[[Path], None]
) -> None:
    log = transactions(open_log)
    expected = committed_offsets(log, 200)
    damage(log.segments[0].path.with_suffix(suffix))
    release(log.segments[0].files)
    assert committed_offsets(log, 200) == expected
    assert [record.offset for record in read_all(log, 200) if record.offset % 2 == 0] == list(range(0, 40, 2))


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_directory_in_the_place_of_an_index_does_not_stop_readers(open_log: LogMaker, suffix: str) -> None:
    log = open_log(index_interval_bytes=100)
    for number in range(60):
        log.append(batch(2, first_timestamp=1_000 + 10 * number))
    path = log.segments[0].path.with_suffix(suffix)
    release(log.segments[0].files)
    path.unlink()
    path.mkdir()
    assert [record.offset for record in read_all(log, 200)] == list(range(120))
    assert log.offset_for_timestamp(1_300) == (1_300, 60)


def test_a_wrong_entry_of_the_offset_index_hides_no_aborted_transaction(open_log: LogMaker) -> None:
    """Fetch responses list all aborted transactions, even if one entry of the offset index is wrong.

    To find the end of the fetched records, the broker reads the offset index. Before a bug was fixed, an index entry
    with a negative position caused an internal error.
    """
    log = transactions(open_log)
    expected = committed_offsets(log, 300)
    release(log.segments[0].files)
    path = log.segments[0].path.with_suffix(".index")
    good = path.read_bytes()
    for position in range(len(good)):
        for bit in (0, 3, 7):
            overwrite(path, 0, good)
            overwrite(path, position, bytes([good[position] ^ 1 << bit]))
            assert committed_offsets(log, 300) == expected


def test_a_batch_that_cannot_be_decoded_for_lack_of_records(open_log: LogMaker) -> None:
    """Readers get all records although damage in a batch's header makes the batch seem larger than the whole log.

    In the same log, a read at an offset above the log end offset fails with OFFSET_OUT_OF_RANGE.
    """
    log = open_log()
    for _ in range(3):
        log.append(RecordBatch.parse(encode_batch(records(1))))
    overwrite(log.segments[0].path, batch(1).size + 8, b"\x7f")
    assert log.read(1, 1_000).records is not None
    assert [record.offset for record in read_all(log)] == [0, 1, 2]
    with pytest.raises(KafkaError) as error:
        log.read(4, 1_000)
    assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


# -- damage to the active segment


def remove(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    os.truncate(path, SIZE)


def put_another_in_its_place(path: Path) -> None:
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    copy.rename(path)


@pytest.mark.parametrize(
    ("damage", "is_open"),
    [(remove, True), (remove, False), (cut, True), (cut, False), (put_another_in_its_place, True)],
)
def test_a_segment_that_vanishes_in_use_is_reported_at_the_next_sync(
    data: DataDirectory, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], None], is_open: bool
) -> None:
    log = filled(data)
    active = log.segments[-1]
    assert data.logs is not None
    data.logs.write_checkpoints()
    damage(active.path)
    if not is_open:
        release(active.files)
    with pytest.raises(KafkaError) as error:
        log.append(batch(2))
        log.flush()
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(KafkaError):
        log.append(batch(2))
    assert caplog.text.count(f"'{active.path}'; the log refuses appends until the next start") == 1
    data.stop()
    caplog.clear()
    log = data.start()
    assert log.log_end_offset >= 20
    assert [offset for offset in consume(log) if offset < 16] == list(range(16))


def test_a_segment_that_vanishes_in_use_is_reported_at_the_next_roll(data: DataDirectory) -> None:
    log = filled(data)
    log.segments[-1].path.unlink()
    with pytest.raises(KafkaError, match="another process has removed the file"):
        log.append(batch(2, size=SIZE * 2))  # All bytes are synced, so the log rolls at once.


def test_a_segment_that_was_changed_in_use_is_checked_at_the_next_start(
    data: DataDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    log = filled(data)
    path = log.segments[-1].path
    overwrite(path, 80, b"\x51")
    data.stop()
    assert f"{path} was changed by another process" in caplog.text
    caplog.clear()
    log = data.start()
    assert f"{path}, position 0: " in caplog.text
    assert consume(log) == [*range(16), 18, 19]
