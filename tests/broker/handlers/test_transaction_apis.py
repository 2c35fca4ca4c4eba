"""Tests of the requests of transactional producers (transaction versions 1 and 2)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.describe_producers import DescribeProducersRequest
from hmb.protocol.messages.describe_transactions import DescribeTransactionsRequest
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest
from hmb.protocol.messages.list_transactions import ListTransactionsRequest
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest
from hmb.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from hmb.storage.log import Log
from hmb.storage.state import manifest
from tests.broker.conftest import Asker
from tests.broker.groups.transactional_producer import NEW, OLD, TIMEOUT, Producer
from tests.storage.transactions import committed_offsets


@pytest.fixture
def log(ask: Asker) -> Log:
    return ask.broker.topics.create("t", 3, {"segment.ms": str(10**15)}).partitions[0]


def committed_offset(ask: Asker, *, stable: bool = False) -> tuple[int, int]:
    topic = OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    request = OffsetFetchRequest(group_id="g", topics=[topic], require_stable=stable)
    (answer,) = ask(request, 7).topics[0].partitions
    return answer.error_code, answer.committed_offset


def state(ask: Asker, name: str = "tx") -> Any:
    return ask(DescribeTransactionsRequest(transactional_ids=[name]), 0).transaction_states[0]


def test_committed_records_are_visible_and_aborted_records_are_not(ask: Asker, log: Log) -> None:
    producer = Producer(ask)
    for committed in (True, False, True):
        assert producer.add() == [0]
        assert producer.write(2) == 0
        assert log.last_stable_offset == log.log_end_offset - 2
        assert producer.end(committed) == 0
        assert log.last_stable_offset == log.log_end_offset
    assert committed_offsets(log) == [0, 1, 6, 7]


def test_a_new_producer_neither_adds_partitions_nor_keeps_its_epoch(ask: Asker, log: Log) -> None:
    producer = Producer(ask, kind=NEW)
    for epoch, committed in enumerate((True, False, True)):
        assert producer.epoch == epoch
        assert producer.write(2) == 0
        assert producer.end(committed) == 0
    assert committed_offsets(log) == [0, 1, 6, 7]
    assert producer.end(False) == 0, "it may abort what it does not know to be empty"
    assert producer.end(True) == ErrorCode.INVALID_TXN_STATE


def test_the_feature_advertises_transaction_version_2(ask: Asker) -> None:
    answer = ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4)
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    assert (levels["transaction.version"], answer.finalized_features_epoch) == (2, 0)
    assert ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3).supported_features == []


@pytest.mark.parametrize(
    ("version", "expected"), [(3, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)]
)
def test_a_partition_outside_of_a_transaction_is_refused(ask: Asker, log: Log, version: int, expected: int) -> None:
    """The broker refuses transactional records if their partition is not part of a transaction (KIP-890).

    If the broker accepted these records, no transaction would later write a marker to the partition. Consumers with
    read_committed would wait for the marker forever.
    """
    producer = Producer(ask)
    assert producer.write(version=version) == expected
    assert producer.add(1) == [0]
    assert producer.write(version=version) == expected
    assert producer.add(0) == [0]
    assert producer.write(version=version) == 0
    assert producer.end() == 0
    assert producer.write(version=version) == expected
    assert log.log_end_offset == log.last_stable_offset == 2


@pytest.mark.parametrize(("version", "expected"), [(11, 0), (12, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)])
def test_a_transaction_of_a_new_producer_begins_at_0(ask: Asker, log: Log, version: int, expected: int) -> None:
    """With transaction version 2, the first sequence number of a new producer must be zero.

    With version 1, the broker accepts a greater number, because the log may have forgotten the producer.
    """
    producer = Producer(ask)
    producer.add()
    producer.sequence = 1
    assert producer.write(version=version) == expected
    assert log.log_end_offset == (0 if expected else 1)


def test_partitions_are_added_all_or_none(ask: Asker, log: Log) -> None:
    producer = Producer(ask)
    unknown, not_tried = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
    assert producer.add(0, 7, 1) == [not_tried, unknown, not_tried]
    assert (state(ask).transaction_state, state(ask).topics) == ("Empty", [])
    assert producer.add(0, 1) == [0, 0]
    found = state(ask)
    assert (found.transaction_state, found.transaction_timeout_ms) == ("Ongoing", TIMEOUT)
    assert [(each.topic, each.partitions) for each in found.topics] == [("t", [0, 1])]


@pytest.mark.parametrize("kind", [OLD, NEW])
def test_a_new_producer_fences_the_old_one(ask: Asker, log: Log, kind: bool) -> None:
    zombie = Producer(ask, kind=kind)
    if kind is OLD:
        assert zombie.add() == [0]
    assert zombie.write() == 0
    successor = Producer(ask, kind=kind)  # InitProducerId aborts the open transaction.
    assert successor.init() == 0
    assert (successor.id, successor.epoch) == (zombie.id, 2)
    assert committed_offsets(log) == []
    assert zombie.write() == ErrorCode.INVALID_PRODUCER_EPOCH
    assert zombie.end() == ErrorCode.PRODUCER_FENCED
    if kind is OLD:
        assert zombie.add() == [ErrorCode.PRODUCER_FENCED]
        assert successor.add() == [0]
    assert successor.write() == 0
    assert zombie.commit_offset(5) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert successor.end() == 0
    assert committed_offsets(log) == [2]


def test_a_transaction_with_a_deleted_topic_can_end(ask: Asker, log: Log) -> None:
    producer = Producer(ask)
    producer.add(0, 1)
    producer.write()
    ask.broker.topics.delete([ask.broker.topics.find("t", log_id(ask))], ask.broker.on_topics_deleted)
    assert producer.end() == 0
    assert state(ask).transaction_state == "CompleteCommit"


def test_a_transaction_with_a_deleted_offsets_topic_can_end(ask: Asker, log: Log) -> None:
    producer = Producer(ask)
    producer.add_offsets()
    producer.commit_offset(5)
    topic = ask.broker.topics.get("__consumer_offsets")
    assert topic is not None
    ask.broker.topics.delete([topic], ask.broker.on_topics_deleted)
    assert producer.end() == 0
    assert state(ask).transaction_state == "CompleteCommit"


def log_id(ask: Asker) -> Any:
    topic = ask.broker.topics.get("t")
    assert topic is not None
    return topic.id


@pytest.mark.parametrize("kind", [OLD, NEW])
@pytest.mark.parametrize("committed", [True, False])
def test_offsets_are_visible_when_the_transaction_commits(
    ask: Asker, log: Log, kind: bool, committed: bool
) -> None:
    producer = Producer(ask, kind=kind)
    if kind is OLD:
        assert producer.commit_offset(5, version=3) == ErrorCode.INVALID_TXN_STATE
        assert producer.commit_offset(5, version=4) == ErrorCode.TRANSACTION_ABORTABLE
        assert producer.add_offsets() == 0
    assert producer.commit_offset(5) == 0
    assert committed_offset(ask) == (0, -1)
    assert committed_offset(ask, stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    assert producer.end(committed) == 0
    assert committed_offset(ask) == committed_offset(ask, stable=True) == (0, 5 if committed else -1)


def test_metadata_that_is_too_long_commits_nothing(make_asker: Callable[..., Asker]) -> None:
    """If the metadata of each offset in a transaction is too long, the broker commits nothing.

    Before a bug was fixed, the broker appended an empty batch, and closed the connection.
    """
    ask = make_asker(offset_metadata_max_bytes="0")
    ask.broker.topics.create("t", 1)
    producer = Producer(ask)
    producer.add_offsets()
    assert producer.commit_offset(5) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert producer.end() == 0
    assert committed_offset(ask, stable=True) == (0, -1)


def test_a_decided_transaction_is_completed_at_the_next_start(
    ask: Asker, log: Log, make_asker: Callable[..., Asker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the broker starts, it writes the missing markers of a transaction that has ended.

    A kill can happen after the broker has stored the decision to commit or abort, but before it writes the markers.
    """
    producers = {committed: Producer(ask, f"tx-{committed}") for committed in (True, False)}
    for offset, producer in enumerate(producers.values()):
        producer.add()
        producer.add_offsets(f"g-{producer.name}")
        producer.write(2)
        producer.commit_offset(offset, f"g-{producer.name}")
    with monkeypatch.context() as patched:
        patched.setattr("hmb.coordinator.transactions.markers.MarkerWriter.write", fail)
        for committed, producer in producers.items():
            assert producer.end(committed) == 0, "the decision stands"
            assert producer.end(committed) == ErrorCode.CONCURRENT_TRANSACTIONS
    assert committed_offsets(log) == []
    ask.close()
    again = make_asker()
    assert again.broker.transactions.loaded.wait(30)
    topic = again.broker.topics.get("t")
    assert topic is not None
    assert committed_offsets(topic.partitions[0]) == [0, 1]
    states = [each.transaction_state for each in again(ListTransactionsRequest(), 2).transaction_states]
    assert sorted(states) == ["CompleteAbort", "CompleteCommit"]
    found = {name: again.broker.groups.offsets.fetch(f"g-tx-{name}", None) for name in (True, False)}
    assert [offset.offset for offset in found[True].values()] == [0]
    assert not found[False]


def fail(*arguments: object) -> None:
    from hmb.protocol.errors import KafkaError

    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")


def test_an_open_transaction_continues_after_a_restart(ask: Asker, log: Log, make_asker: Callable[..., Asker]) -> None:
    producer = Producer(ask)
    producer.add()
    producer.write()
    producer.add_offsets()
    producer.commit_offset(7)
    ask.close()
    producer.ask = again = make_asker()
    assert again.broker.transactions.loaded.wait(30)
    assert committed_offset(again, stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    assert producer.write() == 0
    assert producer.end() == 0
    assert committed_offset(again, stable=True) == (0, 7)
    topic = again.broker.topics.get("t")
    assert topic is not None
    assert committed_offsets(topic.partitions[0]) == [0, 1]


def test_a_producer_id_that_only_the_journal_contains_is_not_assigned_again(
    ask: Asker, make_asker: Callable[..., Asker], tmp_path: Path
) -> None:
    """The broker does not assign a producer id that only the transaction journal contains.

    If another broker has written the data directory, the id may be in the journal and in no log.
    """
    producer = Producer(ask)
    ask.close()
    for name in ("ids", manifest.NAME):
        (tmp_path / "data" / name).unlink()
    again = make_asker()
    assert again.broker.transactions.loaded.wait(30)
    assert again(InitProducerIdRequest(transactional_id=None), 4).producer_id == producer.id + 1


def test_a_transaction_after_its_timeout_is_aborted_and_its_producer_fenced(ask: Asker, log: Log) -> None:
    slow, quick = Producer(ask, "slow", timeout=1), Producer(ask, "quick")
    for producer in (slow, quick):
        producer.add()
        producer.write()
    while state(ask, "slow").transaction_state == "Ongoing":
        ask.broker.transactions.abort_timed_out()
    assert (state(ask, "slow").transaction_state, state(ask, "quick").transaction_state) == ("CompleteAbort", "Ongoing")
    assert slow.end() == ErrorCode.PRODUCER_FENCED
    assert quick.end() == 0
    assert committed_offsets(log) == [1]


def test_an_idle_id_is_forgotten_and_an_open_one_is_not(ask: Asker, log: Log) -> None:
    Producer(ask, "idle")
    Producer(ask, "busy").add()
    ask.broker.transactions.expire(0)
    assert state(ask, "idle").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert state(ask, "busy").transaction_state == "Ongoing"
    first = Producer(ask, "idle")
    assert first.epoch == 0


def test_admins_see_producers_and_abort_hanging_transactions(ask: Asker, log: Log) -> None:
    producer = Producer(ask)
    producer.add()
    producer.write(3)

    def known() -> Any:
        topic = DescribeProducersRequest.TopicRequest(name="t", partition_indexes=[0, 9])
        found, unknown = ask(DescribeProducersRequest(topics=[topic]), 0).topics[0].partitions
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return found.active_producers[0]

    assert (known().producer_id, known().last_sequence, known().current_txn_start_offset) == (producer.id, 2, 0)
    place = WriteTxnMarkersRequest.WritableTxnMarker.WritableTxnMarkerTopic(name="t", partition_indexes=[0, 9])
    marker = WriteTxnMarkersRequest.WritableTxnMarker(producer_id=producer.id, producer_epoch=0, topics=[place])
    (result,) = ask(WriteTxnMarkersRequest(markers=[marker]), 1).markers
    codes = [each.error_code for each in result.topics[0].partitions]
    assert codes == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert known().current_txn_start_offset == -1
    assert committed_offsets(log) == []


def test_admins_list_the_ids_that_they_ask_for(ask: Asker, log: Log) -> None:
    one, other = Producer(ask, "one"), Producer(ask, "other")
    one.add()

    def listed(**wanted: Any) -> list[str]:
        return [each.transactional_id for each in ask(ListTransactionsRequest(**wanted), 2).transaction_states]

    assert listed() == ["one", "other"]
    assert listed(state_filters=["Empty"]) == listed(producer_id_filters=[other.id]) == ["other"]
    assert listed(transactional_id_pattern="o.?e") == ["one"]
    assert listed(duration_filter=10**12) == ["other"], "which has never begun one"
    answer = ask(ListTransactionsRequest(state_filters=["empty", "Empty"]), 0)
    assert answer.unknown_state_filters == ["empty"]
    answer = ask(ListTransactionsRequest(transactional_id_pattern="("), 2)
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_deleting_the_journal_s_topic_removes_all_transactional_ids(ask: Asker, log: Log) -> None:
    Producer(ask)
    topic = ask.broker.topics.get("__transaction_state")
    assert topic is not None
    ask.broker.topics.delete([topic], ask.broker.on_topics_deleted)
    assert state(ask).error_code == ErrorCode.NOT_COORDINATOR
    assert Producer(ask).epoch == 0
