"""Tests of transactions in a log: the last stable offset, and the transaction index after restarts and damage."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import EndTransactionMarker
from hmb.storage.cleanup import deletion
from hmb.storage.config import LogConfig
from hmb.storage.log import Log
from hmb.storage.transaction_index import AbortedTransaction
from tests.storage.conftest import LogMaker, batch, read_all
from tests.storage.transactions import ABORT, COMMIT, Writer, committed_offsets

CLOCK = 2_000


@pytest.fixture
def open_log(directory: Path) -> LogMaker:
    """Return a function that opens a log.

    The clock of the log shows 2,000 ms, and the records have timestamps near 1,000 ms. So no segment becomes old
    enough for the log to start a new segment.
    """

    def open_log(*, clean: bool = True, **config: object) -> Log:
        return Log(directory, LogConfig(**config), clean=clean, clock=lambda: CLOCK)  # type: ignore[arg-type]

    return open_log


def aborted(log: Log) -> list[AbortedTransaction]:
    return [entry for segment in log.segments for entry in segment.transaction_index.from_offset(0)]


def test_records_of_open_transactions_are_not_stable(open_log: LogMaker) -> None:
    log = open_log()
    one, other = Writer(log, 1), Writer(log, 2)
    log.append(batch(2))
    assert log.last_stable_offset == 2
    one.write()
    other.write()
    one.write()
    assert (log.last_stable_offset, log.high_watermark) == (2, 5)
    one.end(COMMIT)
    assert log.last_stable_offset == 3
    other.end(ABORT)
    assert log.last_stable_offset == 7
    assert aborted(log) == [AbortedTransaction(2, 3, 6, 7)]


def test_an_abort_while_another_transaction_is_open_names_its_begin(open_log: LogMaker) -> None:
    log = open_log()
    one, other = Writer(log, 1), Writer(log, 2)
    one.write()
    other.write()
    one.end(ABORT)
    assert aborted(log) == [AbortedTransaction(1, 0, 2, 1)]


def test_readers_of_committed_records_stop_at_the_last_stable_offset(open_log: LogMaker) -> None:
    log = open_log(segment_bytes=700, index_interval_bytes=100)
    one, other = Writer(log, 1), Writer(log, 2)
    for _ in range(5):
        one.write(2)
        one.end(ABORT)
        other.write(2)
        other.end(COMMIT)
    log.append(batch(3))
    begin = one.write(2)
    log.append(batch(3))
    assert committed_offsets(log) == [3, 4, 9, 10, 15, 16, 21, 22, 27, 28, 30, 31, 32]
    assert log.read(begin, 1_000, committed=True).records is None
    assert log.read(log.high_watermark, 1_000, committed=True).records is None
    assert len(read_all(log)) == 28
    one.end(ABORT)
    assert committed_offsets(log)[-3:] == [begin + 2, begin + 3, begin + 4]


def test_a_read_inside_an_aborted_transaction_finds_its_entry_in_a_later_segment(open_log: LogMaker) -> None:
    log = open_log(segment_bytes=batch(1).size * 3)
    writer = Writer(log, 1)
    for _ in range(10):
        writer.write()
    marker = writer.end(ABORT)
    assert len(log.segments) > 3
    for offset in range(marker):
        assert list(log.read(offset, 1, committed=True).aborted) == [AbortedTransaction(1, 0, marker, marker + 1)]
    assert list(log.read(0, 1_000).aborted) == []


@pytest.mark.parametrize("segment_bytes", [300, 1 << 20])
def test_a_read_gets_no_aborted_transactions_that_begin_after_it(open_log: LogMaker, segment_bytes: int) -> None:
    log = open_log(index_interval_bytes=100, segment_bytes=segment_bytes)
    writer = Writer(log, 1)
    for _ in range(200):
        writer.write()
        writer.end(ABORT)
    for offset in (0, 200, 399):
        assert 1 <= len(log.read(offset, 200, committed=True).aborted) <= 3


def test_a_batch_without_the_transaction_cannot_break_into_it(open_log: LogMaker) -> None:
    log = open_log()
    Writer(log, 1).write()
    with pytest.raises(KafkaError) as error:
        log.append(batch(1, producer_id=1, producer_epoch=0, base_sequence=1))
    assert error.value.code is ErrorCode.INVALID_TXN_STATE


def test_markers_of_old_producers_and_old_coordinators_are_refused(open_log: LogMaker) -> None:
    log = open_log()
    writer = Writer(log, 1)
    writer.write()
    log.append_marker(EndTransactionMarker(COMMIT.control_type, 4), 1, 3)
    for epoch, coordinator_epoch, code in (
        (2, 4, ErrorCode.INVALID_PRODUCER_EPOCH),
        (3, 3, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
    ):
        with pytest.raises(KafkaError) as error:
            log.append_marker(EndTransactionMarker(COMMIT.control_type, coordinator_epoch), 1, epoch)
        assert error.value.code is code
    with pytest.raises(KafkaError) as error:
        writer.write()
    assert error.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def filled(log: Log, rounds: int = 60) -> Log:
    """Fill a log with transactions of five producers, and return it.

    The transactions overlap and extend over several segments. Two of them stay open.
    """
    choose = random.Random(4)
    writers = [Writer(log, number) for number in range(5)]
    is_open: set[int] = set()
    for _ in range(rounds):
        writer = choose.choice(writers)
        if writer.producer_id in is_open and choose.random() < 0.5:
            writer.end(choose.choice([COMMIT, ABORT]))
            is_open.remove(writer.producer_id)
        else:
            writer.write(choose.randrange(1, 4))
            is_open.add(writer.producer_id)
        if choose.random() < 0.2:
            log.append(batch(1))
    for producer_id in (0, 1):
        if producer_id not in is_open:
            writers[producer_id].write()
    for producer_id in is_open - {0, 1}:
        writers[producer_id].end(ABORT)
    return log


def knowledge(log: Log) -> tuple[object, ...]:
    return log.last_stable_offset, log.log_end_offset, aborted(log), committed_offsets(log, 300), len(read_all(log))


@pytest.mark.parametrize("segment_bytes", [500, 2_000, 1 << 20])
@pytest.mark.parametrize("recovery_point", [None, 0, 40, 90])
def test_a_restart_knows_the_same_after_a_crash_as_after_a_close(
    open_log: LogMaker, directory: Path, segment_bytes: int, recovery_point: int | None
) -> None:
    log = filled(open_log(segment_bytes=segment_bytes))
    log.flush()
    before = knowledge(log)
    crashed = directory.with_name("crashed-0")
    shutil.copytree(directory, crashed)
    for segment, following in zip(log.segments, log.segments[1:], strict=False):
        # The recovery point is inside this segment or before it, so its index may be missing.
        if following.base_offset > (recovery_point or 0):
            (crashed / segment.path.name).with_suffix(".txnindex").unlink(missing_ok=True)
    log.close()
    assert knowledge(open_log(segment_bytes=segment_bytes)) == before
    for _ in range(2):
        after = Log(crashed, LogConfig(segment_bytes=segment_bytes), recovery_point=recovery_point)
        assert knowledge(after) == before


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "longer", "zeros", "junk", "reversed"])
def test_an_impossible_transaction_index_is_rebuilt(
    open_log: LogMaker, directory: Path, damage: str
) -> None:
    log = filled(open_log(segment_bytes=1_500))
    before = knowledge(log)
    log.close()
    for path in directory.glob("*.txnindex"):
        good = path.read_bytes()
        entries = [good[at : at + 34] for at in range(0, len(good), 34)]
        bad = {
            "cut": good[:-1],
            "longer": good + b"\0",
            "zeros": bytes(len(good)),
            "junk": bytes(range(34)) * 2,
            "reversed": b"".join(reversed([*entries, entries[0]])),
        }
        if damage in bad:
            path.write_bytes(bad[damage])
            assert knowledge(open_log(segment_bytes=1_500)) == before
            assert path.read_bytes() == good
        else:
            # A segment without aborted transactions has no index. Only a check of the log shows that one is missing.
            path.unlink() if damage == "missing" else path.write_bytes(b"")
            assert knowledge(open_log(segment_bytes=1_500, clean=False)) == before
            assert path.read_bytes() == good


def test_deleted_segments_take_their_transaction_indexes_along(open_log: LogMaker, directory: Path) -> None:
    log = filled(open_log(segment_bytes=1_000, file_delete_delay_ms=0))
    stale = aborted(log)
    deletion.delete_records(log, log.segments[3].base_offset)
    deletion.expire(log)
    deletion.expire(log)
    assert {path.stem for path in directory.glob("*.txnindex")} <= {s.path.stem for s in log.segments}
    assert aborted(log) == [entry for entry in stale if entry.last_offset >= log.segments[0].base_offset]


def test_a_failed_write_of_the_index_leaves_no_marker(open_log: LogMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    from hmb.storage.transaction_index import TransactionIndex

    log = open_log()
    writer = Writer(log, 1)
    writer.write()
    size = log.size

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(TransactionIndex, "append", full_disk)
        with pytest.raises(KafkaError) as error:
            writer.end(ABORT)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (log.log_end_offset, log.last_stable_offset) == (1, 0)
    assert log.segments[0].path.stat().st_size == log.size == size
    writer.end(ABORT)
    assert aborted(log) == [AbortedTransaction(1, 0, 1, 2)]


def test_the_transaction_index_is_on_disk_before_the_log_counts_as_synced(
    open_log: LogMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log()
    writer = Writer(log, 1)
    writer.write()
    writer.end(ABORT)
    synced: list[int] = []
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    index = log.segments[0].path.with_suffix(".txnindex").stat().st_ino
    log.flush()
    assert index in synced
    assert synced.index(log.directory.stat().st_ino) > synced.index(index)
    synced.clear()
    log.append(batch(1))
    log.flush()
    assert index not in synced


def test_an_open_transaction_outlives_the_expiry_of_its_producer(directory: Path) -> None:
    now = 10**12
    log = Log(directory, LogConfig(segment_bytes=200), clean=True, clock=lambda: now)
    Writer(log, 1).write()
    for sequence in range(10):
        log.append(batch(1, producer_id=2, producer_epoch=0, base_sequence=sequence))
    assert len(log.segments) > 2
    assert log.last_stable_offset == 0
    log.close()
    assert Log(directory, LogConfig(segment_bytes=200), clean=True).last_stable_offset == 0


def test_offsets_in_a_transaction_have_no_sequence_numbers_and_are_not_duplicates(open_log: LogMaker) -> None:
    log = open_log()
    offsets = {"producer_id": 1, "producer_epoch": 2, "transactional": True}
    assert [log.append_from_coordinator(batch(1, **offsets)).base_offset for _ in range(3)] == [0, 1, 2]
    assert log.last_stable_offset == 0
    with pytest.raises(KafkaError) as error:
        log.append_from_coordinator(batch(1, **offsets | {"producer_epoch": 1}))
    assert error.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
