"""Tests of a coordinator's journal: it writes and syncs records together, in order, and loads them at the start."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from hmb.coordinator.journal.loading import READ_BYTES
from hmb.coordinator.journal.partition import QueuedRecords
from hmb.coordinator.journal.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    Key,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)
from hmb.coordinator.journal.writing import Journal
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import java_hash
from hmb.records import ControlType, EndTransactionMarker, Record, RecordBatch, encode_batch, encode_message_set
from hmb.storage.log import Log
from tests.coordinator.conftest import Topic
from tests.storage.conftest import read_all

RECORD = (b"key", b"value")


def raised(journal: Journal, group_id: str = "g") -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        journal.check_coordinates(group_id)
    return caught.value.code


# The partition of a group


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 0), ("hello", 99162322), ("Ω😀", 2673356), ("polygenelubricants", -(2**31))],
)
def test_the_hash_is_javas(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_a_group_belongs_to_the_partition_where_kafka_looks_for_it(tmp_path: Path) -> None:
    topic = Topic(tmp_path, 50)
    topic.make()
    journal = Journal(topic, must_sync=lambda: False)
    assert [journal.partition_for(group) for group in ("g0", "gc", "gcre", "gc848")] == [41, 42, 47, 6]
    assert journal.partition_for("polygenelubricants") == 0


def test_without_the_topic_nobody_coordinates(tmp_path: Path) -> None:
    topic = Topic(tmp_path, 2)
    journal = Journal(topic, must_sync=lambda: False)
    assert raised(journal) is ErrorCode.NOT_COORDINATOR
    journal.make_topic()
    journal.append("g", [RECORD])
    made = topic.opened
    journal.make_topic()
    assert topic.opened is made
    topic.opened = {}
    assert raised(journal) is ErrorCode.NOT_COORDINATOR


def test_partitions_added_later_move_no_group(tmp_path: Path) -> None:
    topic = Topic(tmp_path, 2)
    journal = Journal(topic, must_sync=lambda: False)
    journal.make_topic()
    before = [journal.partition_for(f"g{i}") for i in range(20)]
    topic.opened[2] = topic.open(2)
    assert [journal.partition_for(f"g{i}") for i in range(20)] == before


# Writing of records


def test_records_are_written_and_synced_before_they_count(journal: Journal, topic: Topic) -> None:
    log = topic.opened[0]
    seen: list[int] = []
    journal.append("g", [RECORD, (b"gone", None)], lambda: seen.append(log.recovery_point))
    assert seen == [2], "all was on disk when it was applied"
    assert [(r.key, r.value, r.timestamp) for r in read_all(log)] == [(*RECORD, 1_000), (b"gone", None, 1_000)]


def test_the_first_thread_writes_the_records_of_all(
    journal: Journal, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs: list[int] = []
    monkeypatch.setattr(os, "fdatasync", syncs.append)
    applied: list[int] = []
    queued = [journal.enqueue("g", [(b"%d" % i, b"")], lambda i=i: applied.append(i)) for i in range(10)]
    journal.write(queued[3])
    assert applied == list(range(10))
    log = topic.opened[0]
    assert log.log_end_offset == 10
    (region,) = [log.read(0, 1 << 20).records]
    assert region is not None and region.size == len(encode_batch(read_all(log))), "one batch"
    assert len(syncs) == 1
    for pending in queued:
        journal.write(pending)
    assert (log.log_end_offset, len(syncs)) == (10, 1)


def test_memory_changes_in_the_order_of_the_log(journal: Journal, topic: Topic) -> None:
    applied: list[bytes] = []
    lock = threading.Lock()  # The lock of a group: it fixes the order in which records are queued.

    def commit(worker: int) -> None:
        for i in range(50):
            key = b"%d %d" % (worker, i)
            with lock:
                pending = journal.enqueue("g", [(key, b"")], lambda key=key: applied.append(key))
            journal.write(pending)
            assert key in applied

    threads = [threading.Thread(target=commit, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(applied) == 200
    assert [record.key for record in read_all(topic.opened[0])] == applied


def test_records_that_are_too_large_fail_alone_and_are_never_split(journal: Journal, topic: Topic) -> None:
    limit = topic.config.max_message_bytes
    half = b"x" * (limit // 2 - 100)
    applied: list[str] = []

    def enqueue(name: str, *values: bytes) -> QueuedRecords:
        return journal.enqueue("g", [(name.encode(), value) for value in values], lambda: applied.append(name))

    queued = [enqueue("a", half), enqueue("b", half, half, half), enqueue("c", half), enqueue("d", half)]
    journal.write(queued[0])
    with pytest.raises(KafkaError, match="too large") as caught:
        journal.write(queued[1])
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    journal.write(queued[2])
    assert applied == ["a", "c", "d"]
    assert [record.key for record in read_all(topic.opened[0])] == [b"a", b"c", b"d"]


def test_records_that_could_not_be_synced_are_never_applied(
    journal: Journal, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)
    applied: list[str] = []
    queued = [journal.enqueue("g", [RECORD], lambda: applied.append("never")) for _ in range(2)]
    for pending in queued:
        with pytest.raises(KafkaError) as caught:
            journal.write(pending)
        assert caught.value.code is ErrorCode.NOT_COORDINATOR
    assert applied == []


def test_a_deleted_topic_accepts_no_records(journal: Journal, topic: Topic) -> None:
    pending = journal.enqueue("g", [RECORD])
    topic.opened[0].refuse(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "deleted"))
    with pytest.raises(KafkaError) as caught:
        journal.write(pending)
    assert caught.value.code is ErrorCode.NOT_COORDINATOR


def test_settling_writes_all_queued_records(journal: Journal) -> None:
    applied: list[str] = []
    pending = journal.enqueue("g", [RECORD], lambda: applied.append("done"))
    journal.write_all_queued("g")
    assert applied == ["done"] and pending.done


# Loading of records


def offset_record(offset: int, *, group: str = "g", partition: int = 0, metadata: str = "") -> Record:
    key = OffsetCommitKey(group=group, topic="t", partition=partition)
    value = OffsetCommitValue(offset=offset, metadata=metadata, commit_timestamp=5)
    return Record(timestamp=5, key=encode_key(key), value=encode_value(value))


def tombstone(record: Record) -> Record:
    return Record(timestamp=5, key=record.key)


def loaded(topic: Topic) -> list[tuple[Key, object]]:
    """Return the records that a broker loads if it starts now."""
    topic.reopen()
    journal = Journal(topic, must_sync=lambda: False)
    assert raised(journal) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    found: list[tuple[Key, object, int | None]] = []
    journal.load(lambda *record: found.append(record), threading.Event())
    journal.check_coordinates("g")
    return [(key, value) for key, value, producer_id in found if producer_id is None]


def offsets(topic: Topic) -> dict[tuple[str, int], int]:
    return {
        (key.group, key.partition): value.offset
        for key, value in loaded(topic)
        if isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue)
    }


def append(log: Log, *records: Record, **options: object) -> None:
    log.append(RecordBatch.parse(encode_batch(records, **options)))  # type: ignore[arg-type]


def test_the_newest_record_of_each_key_is_loaded(topic: Topic) -> None:
    log = topic.opened[0]
    append(log, offset_record(1), offset_record(7, partition=1), offset_record(3, group="h"))
    append(log, offset_record(2), tombstone(offset_record(0, partition=1)))
    append(log, tombstone(offset_record(0, group="h")), offset_record(4, group="h"))
    assert offsets(topic) == {("g", 0): 2, ("h", 0): 4}


def test_groups_are_loaded_too(topic: Topic) -> None:
    value = GroupMetadataValue(protocol_type="consumer", generation=3, protocol="range", leader="m")
    append(topic.opened[0], Record(timestamp=1, key=encode_key(GroupMetadataKey(group="g")), value=encode_value(value)))
    assert loaded(topic) == [(GroupMetadataKey(group="g"), value)]


def test_all_of_a_long_log_is_loaded(topic: Topic) -> None:
    log = topic.opened[0]
    for i in range(30):
        append(log, *(offset_record(i, partition=p, metadata="x" * 4000) for p in range(10)))
    assert log.size > READ_BYTES
    assert offsets(topic) == {("g", p): 29 for p in range(10)}


def test_messages_of_old_brokers_are_loaded(topic: Topic) -> None:
    topic.opened[0].append(memoryview(encode_message_set([offset_record(5)], 0)))
    assert offsets(topic) == {("g", 0): 5}


def test_offsets_of_a_transaction_count_when_it_is_committed(topic: Topic) -> None:
    log = topic.opened[0]

    def transactional(producer: int, *records: Record) -> None:
        append(log, *records, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)

    def end(producer: int, how: ControlType) -> None:
        log.append_marker(EndTransactionMarker(how, 0), producer, 0)

    append(log, *(offset_record(1, partition=p) for p in range(4)))
    transactional(10, offset_record(2, partition=0), offset_record(2, partition=1))
    transactional(11, offset_record(3, partition=2))
    transactional(12, offset_record(4, partition=3))
    append(log, offset_record(9, partition=1))
    end(10, ControlType.COMMIT)
    end(11, ControlType.ABORT)
    assert offsets(topic) == {("g", 0): 2, ("g", 1): 9, ("g", 2): 1, ("g", 3): 1}


def test_records_of_unknown_types_are_skipped(topic: Topic, caplog: pytest.LogCaptureFixture) -> None:
    append(topic.opened[0], Record(timestamp=1, key=b"\0\x63new", value=b"\0\0"), offset_record(5))
    assert offsets(topic) == {("g", 0): 5}
    assert "record type 99 is unknown" in caplog.text


def test_a_partition_that_cannot_be_read_serves_none_of_its_groups(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topic = Topic(tmp_path, 2)
    topic.make()
    journal = Journal(topic, must_sync=lambda: False)
    damaged = journal.partition_for("g")
    append(topic.opened[damaged], offset_record(5), Record(timestamp=1, key=b"k", value=b"v"))
    journal.load(lambda key, value, producer_id: None, threading.Event())
    assert raised(journal) is ErrorCode.NOT_COORDINATOR
    why = "the key or value of a coordinator's record has at least 2 bytes, not 1"
    assert f"__consumer_offsets-{damaged}: offset 1: {why}" in caplog.text
    journal.check_coordinates("h")


def test_one_damaged_batch_does_not_stop_the_groups_of_its_partition(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topic = Topic(tmp_path, 1)
    topic.make()
    log = topic.opened[0]
    for offset in (5, 6, 7):
        append(log, offset_record(offset))
    path = log.segments[0].path
    data = bytearray(path.read_bytes())
    data[2 * len(data) // 3 - 1] ^= 1
    path.write_bytes(data)
    journal, found = Journal(topic, must_sync=lambda: False), list[int]()
    journal.load(lambda key, value, producer_id: found.append(value.offset), threading.Event())
    assert found == [7]
    journal.check_coordinates("g")
    assert f"{path}, position {len(data) // 3}: " in caplog.text
    assert "offsets 1 to 1 are lost" in caplog.text


def test_an_internal_error_in_one_partition_does_not_affect_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topic = Topic(tmp_path, 2)
    topic.make()
    journal = Journal(topic, must_sync=lambda: False)
    append(topic.opened[journal.partition_for("g")], offset_record(5))
    journal.load(lambda key, value, producer_id: value.no_such_field, threading.Event())
    assert raised(journal) is ErrorCode.NOT_COORDINATOR
    assert "AttributeError" in caplog.text
    journal.check_coordinates("h")


def test_loading_stops_with_the_broker(topic: Topic) -> None:
    append(topic.opened[0], offset_record(5))
    journal = Journal(topic, must_sync=lambda: False)
    stop = threading.Event()
    stop.set()
    journal.load(lambda key, value, producer_id: pytest.fail("loaded"), stop)
    assert raised(journal) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_stop_during_a_load_is_not_treated_as_a_damaged_partition(
    topic: Topic, caplog: pytest.LogCaptureFixture
) -> None:
    append(topic.opened[0], offset_record(5))
    journal = Journal(topic, must_sync=lambda: False)
    stop = threading.Event()

    def replay(key: object, value: object, producer_id: int | None) -> None:
        stop.set()
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)  # GroupCoordinator raises this error when it stops.

    journal.load(replay, stop)
    assert stop.is_set() and not caplog.records
    assert raised(journal) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
