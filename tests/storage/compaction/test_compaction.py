"""Tests of compaction: the log keeps the newest value of each key, even if the broker crashes during compaction."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import Codec, Record, RecordBatch, encode_batch, encode_message_set
from hmb.storage.batches.validation import InvalidRecords
from hmb.storage.cleanup import deletion
from hmb.storage.compaction import swap
from hmb.storage.compaction.cleaner import Cleaner, LogToClean, clean, cleanable
from hmb.storage.compaction.throttle import Throttle
from hmb.storage.config import LogConfig
from hmb.storage.failure_isolation import Stopped
from hmb.storage.log import Log
from hmb.storage.log_manager import LogManager
from tests.storage.conftest import delete, produced, read_all
from tests.storage.transactions import ABORT

NO_LIMIT = Throttle(float("inf"), threading.Event())
CONFIG = LogConfig(cleanup_policy="compact", segment_bytes=600, index_interval_bytes=100, min_cleanable_dirty_ratio=0)
Change = tuple[bytes, bytes | None]  # (key, value); the value None is a tombstone


def change_batch(changes: Sequence[Change], codec: Codec = Codec.NONE, **options: int | bool) -> RecordBatch:
    records = [Record(0, 1_000, key, value) for key, value in changes]
    return RecordBatch.parse(encode_batch(records, codec=codec, **options))  # type: ignore[arg-type]


def compact(log: Log, *, first_dirty: int = 0, now: int = 0, memory: int = 1_000_000) -> int:
    work = cleanable(log, first_dirty, now)
    return first_dirty if work is None else clean(log, work, max_memory=memory, now=now, throttle=NO_LIMIT)


def table(log: Log) -> dict[bytes, bytes]:
    """Return the newest value of each key in the log. The result does not contain deleted keys."""
    found: dict[bytes, bytes] = {}
    for record in read_all(log):
        assert record.key is not None
        if record.value is None:
            found.pop(record.key, None)
        else:
            found[record.key] = record.value
    return found


@pytest.fixture
def log(directory: Path) -> Log:
    return Log(directory, CONFIG, clean=True)


change = st.tuples(st.sampled_from([b"a", b"b", b"c", b"d", b"e" * 70]), st.none() | st.binary(max_size=40))
batches = st.lists(
    st.tuples(st.lists(change, min_size=1, max_size=6), st.sampled_from(["v2", "gzip", "v1", "v0"])), max_size=40
)


@settings(max_examples=60, deadline=None)
@given(batches=batches, memory=st.sampled_from([200, 400, 1_000_000]), rounds=st.integers(1, 3))
def test_a_compacted_log_has_the_same_values_as_a_dict(
    batches: list[tuple[list[Change], str]], memory: int, rounds: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name) / "t-0"
        directory.mkdir()
        log = Log(directory, CONFIG, clean=True)
        everything: dict[int, Change] = {}
        first_dirty = 0
        for changes, kind in batches:
            records = [Record(0, 1_000, key, value) for key, value in changes]
            if kind.startswith("v") and kind != "v2":
                data = encode_message_set(records, int(kind[1]), Codec.GZIP if len(changes) % 2 else Codec.NONE)
            else:
                data = encode_batch(records, codec=Codec.GZIP if kind == "gzip" else Codec.NONE)
            base_offset = log.append(produced(data)).base_offset
            everything |= {base_offset + index: each for index, each in enumerate(changes)}
        active = log.segments[-1].base_offset
        for _ in range(rounds):
            first_dirty = compact(log, first_dirty=first_dirty, memory=memory)
        kept = {record.offset: (record.key, record.value) for record in read_all(log)}
        assert kept.items() <= everything.items()  # Compaction changes no offset and adds no record.
        assert all(kept[offset] == each for offset, each in everything.items() if offset >= active)
        last = {key: offset for offset, (key, _) in everything.items()}
        assert set(last.values()) <= kept.keys()  # The last record of each key stays.
        if memory == 1_000_000:  # With enough memory, the closed segments contain each key only once.
            clean_keys = [key for offset, (key, _) in kept.items() if offset < active]
            assert len(clean_keys) == len(set(clean_keys))
        reopened = Log(directory, CONFIG)
        assert {r.offset: (r.key, r.value) for r in read_all(reopened)} == kept
        assert reopened.log_end_offset == log.log_end_offset


def fill(log: Log, rounds: int = 20) -> None:
    for number in range(rounds):
        log.append(change_batch([(f"key {i}".encode(), f"value {number}".encode()) for i in range(4)]))


@pytest.mark.parametrize("memory", [1, 500, 2_000])
def test_rounds_with_too_little_memory_clean_the_whole_log_together(log: Log, memory: int) -> None:
    """If the memory is too small for all keys, each round cleans a part of the log.

    After several rounds, the log is the same as after one round with enough memory.
    """
    for number in range(60):
        keys = [b"key %d" % (number * each % 37) for each in range(1, 5)]
        log.append(change_batch([(key, b"value %d" % number) for key in keys]))
    expected, active = table(log), log.segments[-1].base_offset
    first_dirty, rounds = compact(log, memory=memory), 1
    assert 0 < first_dirty < active
    while first_dirty < active:
        before, first_dirty, rounds = first_dirty, compact(log, first_dirty=first_dirty, memory=memory), rounds + 1
        assert first_dirty > before
    kept = [record.key for record in read_all(log) if record.offset < active]
    assert table(log) == expected
    assert len(kept) == len(set(kept))
    assert rounds < 60


def test_small_neighbors_become_one_segment(log: Log) -> None:
    fill(log)
    before = len(log.segments)
    assert before >= 5
    first_dirty = compact(log)
    assert first_dirty == log.segments[-1].base_offset
    assert cleanable(log, first_dirty, 0) is None
    compact(log)  # The first round has made the segments small. The second round merges them.
    assert len(log.segments) == 2


def test_an_accepted_batch_can_be_compacted(directory: Path) -> None:
    """The cleaner can compact every batch that the log accepts.

    Before a bug was fixed, it failed on a batch of 33 MiB, although max.decompressed.message.bytes allowed this size.
    """
    log = Log(directory, replace(CONFIG, max_decompressed=64 << 20), clean=True)
    log.append(change_batch([(b"k", bytes(33 << 20))], Codec.ZSTD))
    log.append(change_batch([(b"k", b"later"), (b"j", b"x" * 500)]))
    fill(log)
    assert compact(log) == log.segments[-1].base_offset
    assert log.segments[0].base_offset == 0 and table(log)[b"k"] == b"later"


def test_tombstones_stay_for_their_time_and_then_go(log: Log) -> None:
    fill(log, 5)
    log.append(change_batch([(b"key 1", None), (b"key 2", b"last")]))
    fill(log, 0)
    for number in range(12):
        log.append(change_batch([(b"other", f"{number}".encode() * 20)]))
    now, retention = 5_000, CONFIG.delete_retention_ms
    compact(log, now=now)
    tombstones = [record for record in read_all(log) if record.value is None]
    assert [(r.key, r.timestamp) for r in tombstones] == [(b"key 1", 1_000)]
    for later, left in ((now + retention - 1, 1), (now + retention, 0)):
        work = LogToClean(log.segments[:-1], 0, log.segments[-1].base_offset)
        clean(log, work, max_memory=1_000_000, now=later, throttle=NO_LIMIT)
        assert sum(record.value is None for record in read_all(log)) == left
    assert b"key 1" not in table(log) and table(log)[b"key 2"] == b"last"


def test_an_aborted_record_hides_nothing_and_an_open_transaction_waits(log: Log) -> None:
    producer: dict[str, int] = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    log.append(change_batch([(b"k", b"committed")]))
    log.append(change_batch([(b"k", b"aborted")], base_sequence=0, **producer))
    log.append_marker(ABORT, 7, 0)
    begin = log.append(change_batch([(b"k", b"open")], base_sequence=1, **producer)).base_offset
    fill(log, 6)
    assert compact(log) == begin
    kept = [(record.offset, record.value) for record in read_all(log) if record.key == b"k"]
    assert kept == [(0, b"committed"), (begin, b"open")]
    assert cleanable(log, begin, 0) is None


def test_the_last_batch_of_a_producer_keeps_its_place_without_records(log: Log) -> None:
    log.append(change_batch([(b"k", b"1")], producer_id=7, producer_epoch=0, base_sequence=0))
    fill(log)
    log.append(change_batch([(b"k", b"2")]))
    fill(log)
    compact(log)
    assert 0 not in {record.offset for record in read_all(log)}
    for snapshot in log.directory.glob("*.snapshot"):
        snapshot.unlink()
    reopened = Log(log.directory, CONFIG)
    assert reopened.append(change_batch([(b"k", b"3")], producer_id=7, producer_epoch=0, base_sequence=1)).base_offset
    with pytest.raises(KafkaError) as error:
        reopened.append(change_batch([(b"k", b"4")], producer_id=7, producer_epoch=0, base_sequence=5))
    assert error.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_records_without_a_key_are_refused_with_their_places(log: Log) -> None:
    records = [Record(0, 1_000, b"k", b"v"), Record(0, 1_000, None, b"v"), Record(0, 1_000, None, None)]
    for data in (encode_batch(records), encode_message_set(records, 1, Codec.GZIP), encode_message_set(records, 0)):
        with pytest.raises(InvalidRecords) as error:
            log.append(produced(data))
        assert list(error.value.errors) == [1, 2]
    assert log.log_end_offset == 0


def test_young_records_wait_for_the_compaction_lag(directory: Path) -> None:
    log = Log(directory, replace(CONFIG, min_compaction_lag_ms=100), clean=True)
    fill(log)
    assert cleanable(log, 0, 1_050) is None
    assert cleanable(log, 0, 1_100) is not None


def test_a_log_is_compacted_when_it_is_dirty_enough_or_old_enough(directory: Path) -> None:
    log = Log(directory, replace(CONFIG, min_cleanable_dirty_ratio=0.5, max_compaction_lag_ms=10_000), clean=True)
    fill(log, 40)
    middle, late = log.segments[len(log.segments) // 2].base_offset, log.segments[-3].base_offset
    assert cleanable(log, 0, 2_000) is not None
    assert cleanable(log, middle - 40, 2_000) is not None
    assert cleanable(log, late, 2_000) is None
    assert cleanable(log, late, 11_001) is not None


class Crash(BaseException):
    """An exception that simulates `kill -9`.

    No code of the broker catches this exception, so no file changes after it.
    """


@pytest.mark.parametrize("renames", range(12))
def test_a_crash_at_any_step_of_the_swap_loses_and_doubles_nothing(
    log: Log, renames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log, 12)
    expected, ends = table(log), log.log_end_offset
    everything = [record.offset for record in read_all(log)]
    left, rename = renames, Path.rename

    def crashing(path: Path, target: Path) -> Path:
        nonlocal left
        if left == 0:
            raise Crash
        left -= 1
        return rename(path, target)

    snapshot = log.directory.with_name("after-0")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", crashing)
        patch.setattr(Path, "unlink", lambda *_, **__: None)  # A killed broker deletes no files.
        with pytest.raises(Crash):
            compact(log)
    shutil.copytree(log.directory, snapshot)
    for _ in range(2):  # The second start uses the files of the first start.
        after = Log(snapshot, CONFIG)
        offsets = [record.offset for record in read_all(after)]
        assert offsets == sorted(set(offsets)) and set(offsets) <= set(everything)
        assert (table(after), after.log_end_offset) == (expected, ends)
        assert not [path.name for path in snapshot.iterdir() if path.suffix in (swap.CLEANED, swap.SWAP, ".deleted")]


def test_a_full_disk_leaves_the_log_as_it_was(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(log)
    before = table(log)

    def full_disk(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", full_disk)
        with pytest.raises(OSError, match="No space"):
            compact(log)
    assert table(log) == before
    assert not list(log.directory.glob("*.cleaned"))
    sizes = log.size
    compact(log)
    assert table(log) == before and log.size < sizes


def test_readers_read_on_while_segments_are_replaced(log: Log) -> None:
    fill(log)
    region = log.read(0, 10_000).records
    assert region is not None
    data = region.read()
    compact(log)
    assert region.read() == data


def test_the_stop_ends_a_round_at_once(log: Log) -> None:
    fill(log)
    stop = threading.Event()
    stop.set()
    work = cleanable(log, 0, 0)
    assert work is not None
    with pytest.raises(Stopped):
        clean(log, work, max_memory=1_000_000, now=0, throttle=Throttle(1.0, stop))
    assert not list(log.directory.glob("*.cleaned"))


def test_the_cleaner_cleans_all_logs_and_stores_its_positions(tmp_path: Path) -> None:
    from uuid import uuid4

    from hmb.protocol.topics import TopicPartition
    from hmb.storage.state.checkpoints import read_offsets

    logs = LogManager(tmp_path)
    logs.load({}, CONFIG)
    names = [TopicPartition("t", 0), TopicPartition("t", 1)]
    for name in names:
        fill(logs.create(name, CONFIG, uuid4()))
    fill(logs.create(TopicPartition("plain", 0), LogConfig(segment_bytes=600), uuid4()))
    Cleaner(logs, max_memory=1_000_000, rate=float("inf"), stop=threading.Event()).run()
    dirty = read_offsets(tmp_path / "cleaner-offset-checkpoint")
    assert dirty == {name: log.segments[-1].base_offset for name, log in logs.items() if name in names}
    keys = [[record.key for record in read_all(log)] for _, log in logs.items()]
    assert [len(each) for each in keys] == [80, 20, 20]  # The first log is not compacted.
    logs.close()


def test_an_empty_checkpoint_of_kafka_is_not_damage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logs = LogManager(tmp_path)
    (tmp_path / "cleaner-offset-checkpoint").touch()
    Cleaner(logs, max_memory=1_000_000, rate=float("inf"), stop=threading.Event()).run()
    assert not caplog.text
    logs.close()


def test_a_topic_created_again_is_compacted_from_its_start(tmp_path: Path) -> None:
    from uuid import uuid4

    from hmb.protocol.topics import TopicPartition

    logs, name = LogManager(tmp_path), TopicPartition("t", 0)
    logs.load({}, CONFIG)
    cleaner = Cleaner(logs, max_memory=1_000_000, rate=float("inf"), stop=threading.Event())
    for rounds in (40, 20):
        log = logs.create(name, CONFIG, uuid4())
        fill(log, rounds)
        cleaner.run()
        assert len(read_all(log)) == 20  # the records of the active segment, and one for each key
        delete(logs, name)
    logs.close()


def test_segments_that_were_deleted_meanwhile_are_left_alone(log: Log) -> None:
    fill(log)
    work = cleanable(log, 0, 0)
    assert work is not None
    log.reconfigure(replace(CONFIG, cleanup_policy="compact,delete"))
    deletion.delete_records(log, log.segments[2].base_offset)
    deletion.expire(log)
    before = [record.offset for record in read_all(log)]
    assert clean(log, work, max_memory=1_000_000, now=0, throttle=NO_LIMIT) == 0
    assert [record.offset for record in read_all(log)] == before


def test_a_log_whose_offsets_go_back_is_left_as_it_is(log: Log) -> None:
    """The cleaner does not change a log in which a batch has a lower offset than the batch before it.

    The cleaner selects records by their offsets. No CRC protects a batch's base offset, so these offsets may be
    damaged.
    """
    fill(log)
    segment = log.segments[1]
    segment.file.write([(1).to_bytes(8, "big")], 0)
    data = segment.path.read_bytes()
    with pytest.raises(KafkaError, match="up to offset 15 precedes one from 1 on") as error:
        compact(log)
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE
    assert segment.path.read_bytes() == data


def test_empty_segments_do_not_stop_retention(directory: Path) -> None:
    log = Log(
        directory, replace(CONFIG, cleanup_policy="compact,delete", retention_ms=1_000), clean=True, clock=lambda: 9_000
    )
    fill(log)
    compact(log)
    assert log.segments[0].size == 0
    assert deletion.expire(log) > 1
    assert log.log_start_offset == log.log_end_offset
