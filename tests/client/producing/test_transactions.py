"""Tests of transactions, with a broker and with a scripted coordinator.

The scripted coordinator reports no features, so its producers use transaction version 1. Producers of a real HMB
broker use version 2.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hmb.client import Cluster, Connection, Consumer, TopicPartition
from hmb.client.group.interface import GroupMetadata, OffsetAndMetadata
from hmb.client.metadata import Node
from hmb.client.producing.producer import Producer
from hmb.client.producing.transactions.states import TRANSITIONS, TransactionalState
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from hmb.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from hmb.protocol.schema import Request, Response
from tests.client.producing.produce_scripts import batches, numbers, produced, values
from tests.client.producing.transaction_scripts import Coordinating, Scene
from tests.client.scripted_broker import HangUp


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene(Coordinating())
    scene.producer.init_transactions()
    yield scene
    scene.close()


def read(servers: str, topic: str, isolation_level: Any = "read_committed") -> list[bytes | None]:
    return [record.value for record in Consumer(servers, topic, until="end", isolation_level=isolation_level)]


def test_committed_records_are_returned_and_aborted_ones_are_not(servers: str) -> None:
    with Producer(servers, transactional_id="reads") as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send("txn", b"1", partition=0)
            producer.send_many("txn", [b"2", b"3"], partition=0)
        with pytest.raises(RuntimeError), producer.transaction():
            producer.send("txn", b"4", partition=0).result(10)
            raise RuntimeError
        with producer.transaction():
            producer.send("txn", b"5", partition=0)
    assert read(servers, "txn") == [b"1", b"2", b"3", b"5"]
    assert read(servers, "txn", "read_uncommitted") == [b"1", b"2", b"3", b"4", b"5"]


def test_offsets_are_committed_with_the_transaction(servers: str) -> None:
    place = TopicPartition("source", 0)
    with Producer(servers) as producer:
        producer.send("source", b"x").result(10)
    with Producer(servers, transactional_id="offsets") as producer:
        producer.init_transactions()
        with pytest.raises(RuntimeError), producer.transaction():
            producer.send_offsets_to_transaction({place: 3}, "group")
            raise RuntimeError
        with producer.transaction():
            producer.send_offsets_to_transaction({place: OffsetAndMetadata(7, "word")}, GroupMetadata("group"))
    with Consumer(servers, group="group") as consumer:
        assert consumer.committed(place) == {place: OffsetAndMetadata(7, "word")}


def test_a_newer_producer_of_the_same_name_fences_the_older_one(servers: str) -> None:
    with Producer(servers, transactional_id="fenced") as old, Producer(servers, transactional_id="fenced") as new:
        old.init_transactions()
        old.begin_transaction()
        delivery = old.send("fenced", b"old", partition=0)
        delivery.result(10)
        new.init_transactions()
        with pytest.raises(KafkaError, match="A newer producer of the same transactional id has taken over"):
            old.commit_transaction()
        with new.transaction():
            new.send("fenced", b"new", partition=0)
        with pytest.raises(KafkaError, match="begin_transaction of 'fenced': the producer cannot be used any more: "):
            old.begin_transaction()
    assert read(servers, "fenced") == [b"new"]


def test_the_coordinator_receives_each_partition_once(scene: Scene) -> None:
    for _ in range(2):
        with scene.producer.transaction():
            for _ in range(2):
                scene.producer.send("t", b"x").result(10)
    one = ["AddPartitionsToTxn", "Produce", "Produce", "EndTxn"]
    assert scene.names() == ["InitProducerId", *one, *one]
    assert numbers(scene.broker) == [(5, 0, number) for number in range(4)]
    assert all(batch.is_transactional for batch in batches(scene.broker))
    assert {request.transactional_id for request in scene.asked(ProduceRequest)} == {"me"}


def test_a_transaction_in_which_nothing_was_sent_costs_nothing(scene: Scene) -> None:
    with scene.producer.transaction():
        pass
    scene.producer.begin_transaction()
    scene.producer.abort_transaction()
    assert scene.names() == ["InitProducerId"]


def test_after_a_failed_delivery_a_transaction_can_only_be_aborted(scene: Scene) -> None:
    scene.script.answers = [produced(ErrorCode.INVALID_RECORD)]
    scene.producer.begin_transaction()
    assert scene.producer.send("t", b"1").exception(10)
    for step in (scene.producer.commit_transaction, lambda: scene.producer.send("t", b"2")):
        with pytest.raises(KafkaError, match="has failed and has to be aborted: INVALID_RECORD") as caught:
            step()
        assert caught.value.code is ErrorCode.INVALID_RECORD
    scene.producer.abort_transaction()
    with scene.producer.transaction():
        scene.producer.send("t", b"3")
    assert [request.committed for request in scene.asked(EndTxnRequest)] == [False, True]
    # The batch after a rejected one gets the same sequence number.
    assert numbers(scene.broker) == [(5, 0, 0), (5, 0, 0)]


def test_a_block_that_cannot_be_committed_is_aborted(scene: Scene) -> None:
    scene.script.answers = [produced(ErrorCode.INVALID_RECORD)]
    with (
        pytest.raises(KafkaError, match=r"commit_transaction of 'me': .* has to be aborted"),
        scene.producer.transaction(),
    ):
        scene.producer.send("t", b"1")
    assert [request.committed for request in scene.asked(EndTxnRequest)] == [False]


def test_a_commit_that_is_interrupted_before_the_coordinator_is_asked_can_be_aborted(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(producer: Producer, timeout: float | None = None) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(Producer, "flush", interrupted)
    with pytest.raises(KeyboardInterrupt), scene.producer.transaction():
        scene.producer.send("t", b"1").result(10)
    assert [end.committed for end in scene.asked(EndTxnRequest)] == [False]


def test_queued_records_are_discarded(scene: Scene) -> None:
    producer = Producer(scene.broker.address, transactional_id="slow", linger_ms=3_600_000)
    producer.init_transactions()
    producer.begin_transaction()
    delivery = producer.send("t", b"1")
    producer.abort_transaction()
    assert "not sent, because its transaction was aborted" in str(delivery.exception(0))
    producer.close(10)
    assert values(scene.broker) == []


def test_when_a_copy_may_still_be_written_the_next_transaction_has_a_new_epoch(scene: Scene) -> None:
    scene.script.answers = [True, produced(ErrorCode.INVALID_RECORD)]
    scene.producer.begin_transaction()
    assert scene.producer.send("t", b"1").exception(10)
    scene.producer.abort_transaction()
    with scene.producer.transaction():
        scene.producer.send("t", b"2")
    first, second = scene.asked(InitProducerIdRequest)
    assert [(it.producer_id, it.producer_epoch) for it in (first, second)] == [(-1, -1), (5, 0)]
    assert [request.committed for request in scene.asked(EndTxnRequest)] == [True]
    assert numbers(scene.broker) == [(5, 0, 0), (5, 0, 0), (5, 1, 0)]


def test_an_unknown_producer_id_aborts_the_transaction(scene: Scene) -> None:
    scene.script.answers = [produced(), produced(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)]
    scene.producer.begin_transaction()
    scene.producer.send("t", b"1").result(10)
    assert scene.producer.send("t", b"2").exception(10)
    scene.producer.abort_transaction()
    assert len(scene.asked(InitProducerIdRequest)) == 2


@pytest.mark.parametrize(
    "moved", [EndTxnResponse(error_code=ErrorCode.NOT_COORDINATOR), True], ids=["says so", "is gone"]
)
def test_a_coordinator_that_has_moved_is_found_again(scene: Scene, moved: Response | bool) -> None:
    scene.script.other[EndTxnRequest] = [moved]
    with scene.producer.transaction():
        scene.producer.send("t", b"1")
    assert len(scene.asked(FindCoordinatorRequest)) == 2
    assert {request.key_type for request in scene.asked(FindCoordinatorRequest)} == {1}


def test_a_transaction_waits_for_the_end_of_the_previous_one(scene: Scene) -> None:
    results = AddPartitionsToTxnResponse.AddPartitionsToTxnResult.AddPartitionsToTxnTopicResult
    partition = results.AddPartitionsToTxnPartitionResult(
        partition_index=0, partition_error_code=ErrorCode.CONCURRENT_TRANSACTIONS
    )
    again = AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[results(name="t", results_by_partition=[partition])]
    )
    scene.script.other[AddPartitionsToTxnRequest] = [again, again]
    with scene.producer.transaction():
        scene.producer.send("t", b"1")
    assert scene.names()[1:] == ["AddPartitionsToTxn"] * 3 + ["Produce", "EndTxn"]


def test_refused_offsets_abort_the_transaction(scene: Scene) -> None:
    topic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
    partition = topic.TxnOffsetCommitResponsePartition(partition_index=1, error_code=ErrorCode.ILLEGAL_GENERATION)
    refused = TxnOffsetCommitResponse(topics=[topic(name="t", partitions=[partition])])
    scene.script.other[TxnOffsetCommitRequest] = [refused]
    scene.producer.begin_transaction()
    with pytest.raises(KafkaError, match=r"ILLEGAL_GENERATION \(22\): t-1: "):
        scene.producer.send_offsets_to_transaction({TopicPartition("t", 1): 5}, GroupMetadata("g", 3, "member"))
    with pytest.raises(KafkaError, match="has to be aborted: ILLEGAL_GENERATION"):
        scene.producer.commit_transaction()
    scene.producer.abort_transaction()
    (sent,) = scene.asked(TxnOffsetCommitRequest)
    assert (sent.generation_id, sent.member_id, sent.topics[0].partitions[0].committed_offset) == (3, "member", 5)
    assert [request.committed for request in scene.asked(EndTxnRequest)] == [False]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    """Return a list that collects the connections that clients open during the test."""
    made: list[Connection] = []
    connect = Cluster.connect

    def noting(cluster: Cluster, node: Node) -> Connection:
        made.append(connect(cluster, node))
        return made[-1]

    monkeypatch.setattr(Cluster, "connect", noting)
    return made


def test_closing_leaves_no_connection_open(made: list[Connection]) -> None:
    scene = Scene(Coordinating())
    scene.producer.init_transactions()
    with scene.producer.transaction():
        scene.producer.send("t", b"1")
    scene.producer.close(10)
    scene.broker.stop()
    # The producer opens one connection for metadata, one to the leader of the partition, and one to the coordinator.
    assert len(made) >= 3
    assert not any(connection.is_open for connection in made)


class SlowGroupCoordinator(Coordinating):
    """A scripted coordinator that does not respond to a TxnOffsetCommit request before the end of the test."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked, self.may_end = threading.Event(), threading.Event()

    def __call__(self, request: Request, version: int) -> Response | None:
        if isinstance(request, TxnOffsetCommitRequest):
            self.is_asked.set()
            assert self.may_end.wait(120)
            raise HangUp
        return super().__call__(request, version)


def test_closing_ends_a_call_that_waits_for_the_group_coordinator(made: list[Connection]) -> None:
    """`send_offsets_to_transaction` raises an error at once if the producer is closed during the call.

    No connection stays open. Before a bug was fixed, the call waited until `delivery_timeout`, and the connection to
    the transaction coordinator stayed open.
    """
    script = SlowGroupCoordinator()
    scene = Scene(script)
    scene.producer.init_transactions()
    scene.producer.begin_transaction()
    with ThreadPoolExecutor() as threads:
        sent = threads.submit(scene.producer.send_offsets_to_transaction, {TopicPartition("t", 1): 5}, "g")
        try:
            assert script.is_asked.wait(60)
            scene.producer.close(10)
            with pytest.raises(ConnectionError):
                sent.result(60)
            assert not any(connection.is_open for connection in made)
        finally:
            script.may_end.set()
            scene.broker.stop()


def test_the_error_of_a_call_at_the_wrong_time_names_the_missing_call(scene: Scene) -> None:
    other = Producer(scene.broker.address, transactional_id="other")
    with pytest.raises(KafkaError, match=r"begin_transaction of 'other': init_transactions\(\) comes first"):
        other.begin_transaction()
    other.close(10)
    for step in (
        lambda: scene.producer.send("t", b"x"),
        scene.producer.commit_transaction,
        scene.producer.abort_transaction,
    ):
        with pytest.raises(KafkaError, match="of 'me': no transaction has begun"):
            step()
    scene.producer.begin_transaction()
    with pytest.raises(KafkaError, match="begin_transaction of 'me': a transaction has begun"):
        scene.producer.begin_transaction()
    scene.producer.abort_transaction()


def test_requirements_of_transactions() -> None:
    with pytest.raises(ValueError, match=r"transactions need acks=-1 \(all\), not 1"):
        Producer("127.0.0.1:1", acks=1, transactional_id="x")
    with pytest.raises(ValueError, match="transactions need idempotence"):
        Producer("127.0.0.1:1", idempotence=False, transactional_id="x")
    with (
        Producer("127.0.0.1:1") as producer,
        pytest.raises(ValueError, match="this producer has no transactional_id"),
    ):
        producer.begin_transaction()


def test_every_state_can_be_reached_and_only_one_is_final() -> None:
    reached = {TransactionalState.UNINITIALIZED}
    for _ in TransactionalState:
        reached |= {after for before, _, after in TRANSITIONS if before in reached}
    assert reached == set(TransactionalState)
    assert set(TransactionalState) - {before for before, _, _ in TRANSITIONS} == {TransactionalState.FATAL_ERROR}
