"""Tests of transaction version 2 (KIP-890).

The broker adds the partitions to the transaction, so the producer sends no AddPartitionsToTxn requests. Each
transaction has its own producer epoch.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hmb.client import Connection, Consumer, TopicPartition
from hmb.client.group.interface import GroupMetadata, OffsetAndMetadata
from hmb.client.producing.producer import Producer
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.describe_transactions import DescribeTransactionsRequest
from hmb.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from hmb.protocol.schema import Request, Response
from tests.client.producing.produce_scripts import numbers, produced
from tests.client.producing.transaction_scripts import Coordinating, Scene


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene(Coordinating(), level=2)
    scene.producer.init_transactions()
    yield scene
    scene.close()


def test_brokers_add_the_partitions_and_each_transaction_has_its_own_epoch(scene: Scene) -> None:
    for _ in range(2):
        with scene.producer.transaction():
            for _ in range(2):
                scene.producer.send("t", b"x").result(10)
            scene.producer.send_offsets_to_transaction({TopicPartition("t", 0): 5}, GroupMetadata("g", 3, "member"))
    one = ["Produce", "Produce", "TxnOffsetCommit", "EndTxn"]
    assert scene.names() == ["InitProducerId", *one, *one]
    versions = {kind: scene.versions(kind) for kind in (ProduceRequest, TxnOffsetCommitRequest, EndTxnRequest)}
    assert versions == {ProduceRequest: {12}, TxnOffsetCommitRequest: {5}, EndTxnRequest: {5}}
    assert numbers(scene.broker) == [(5, 0, 0), (5, 0, 1), (5, 1, 0), (5, 1, 1)]
    assert [request.producer_epoch for request in scene.asked(TxnOffsetCommitRequest)] == [0, 1]
    assert [request.producer_epoch for request in scene.asked(EndTxnRequest)] == [0, 1]


def test_after_the_last_epoch_the_next_transaction_has_another_producer_id(scene: Scene) -> None:
    scene.script.other[EndTxnRequest] = [EndTxnResponse(producer_id=6, producer_epoch=0)]
    for _ in range(2):
        with scene.producer.transaction():
            scene.producer.send("t", b"x")
    assert numbers(scene.broker) == [(5, 0, 0), (6, 0, 0)]


def test_a_transaction_in_which_nothing_was_sent_costs_nothing(scene: Scene) -> None:
    with scene.producer.transaction():
        pass
    scene.producer.begin_transaction()
    scene.producer.abort_transaction()
    assert scene.names() == ["InitProducerId"]


@pytest.mark.parametrize("level", [1, 2])
def test_a_transaction_to_which_no_offsets_are_added_has_no_effect_at_the_coordinator(level: int) -> None:
    """A transaction without records sends no request, even if the program adds an empty dict of offsets.

    For example, a program that copies records has no records to send and no offsets to commit after an empty poll.
    """
    scene = Scene(Coordinating(), level)
    try:
        scene.producer.init_transactions()
        with scene.producer.transaction():
            scene.producer.send_offsets_to_transaction({}, "g")
        assert scene.names() == ["InitProducerId"]
    finally:
        scene.close()


@pytest.mark.parametrize(
    "answers",
    [
        [produced(ErrorCode.INVALID_RECORD)],
        [produced(ErrorCode.TRANSACTION_ABORTABLE)],
        [produced(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)],
        [True, produced(ErrorCode.INVALID_RECORD)],
    ],
    ids=["the batch is refused", "the transaction cannot go on", "wrong number", "a copy may still be written"],
)
def test_after_every_failure_the_abort_is_an_end_and_gives_a_new_epoch(
    scene: Scene, answers: list[Response | bool]
) -> None:
    scene.script.answers = answers
    scene.producer.begin_transaction()
    assert scene.producer.send("t", b"1").exception(10)
    with pytest.raises(KafkaError, match="has failed and has to be aborted"):
        scene.producer.commit_transaction()
    scene.producer.abort_transaction()
    with scene.producer.transaction():
        scene.producer.send("t", b"2")
    assert [request.committed for request in scene.asked(EndTxnRequest)] == [False, True]
    assert len(scene.asked(InitProducerIdRequest)) == 1
    assert numbers(scene.broker)[-1] == (5, 1, 0)


def test_a_batch_waits_for_the_markers_of_the_previous_transaction(scene: Scene) -> None:
    scene.script.answers = [produced(ErrorCode.CONCURRENT_TRANSACTIONS), produced(ErrorCode.CONCURRENT_TRANSACTIONS)]
    with scene.producer.transaction():
        scene.producer.send("t", b"1")
    assert scene.names()[1:] == ["Produce"] * 3 + ["EndTxn"]
    assert numbers(scene.broker) == [(5, 0, 0)] * 3


def test_a_commit_that_the_coordinator_refuses_as_abortable_can_be_aborted(scene: Scene) -> None:
    scene.script.other[EndTxnRequest] = [EndTxnResponse(error_code=ErrorCode.TRANSACTION_ABORTABLE)]
    with pytest.raises(KafkaError, match="TRANSACTION_ABORTABLE"), scene.producer.transaction():
        scene.producer.send("t", b"1")
    with scene.producer.transaction():
        scene.producer.send("t", b"2")
    assert [request.committed for request in scene.asked(EndTxnRequest)] == [True, False, True]


def test_a_commit_is_repeated_with_the_same_epoch_when_its_response_is_lost(scene: Scene) -> None:
    scene.script.other[EndTxnRequest] = [True]
    with scene.producer.transaction():
        scene.producer.send("t", b"1")
    assert [(request.producer_epoch, request.committed) for request in scene.asked(EndTxnRequest)] == [(0, True)] * 2


def test_refused_offsets_abort_the_transaction(scene: Scene) -> None:
    topic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
    partition = topic.TxnOffsetCommitResponsePartition(partition_index=1, error_code=ErrorCode.TRANSACTION_ABORTABLE)
    refused = TxnOffsetCommitResponse(topics=[topic(name="t", partitions=[partition])])
    scene.script.other[TxnOffsetCommitRequest] = [refused]
    scene.producer.begin_transaction()
    with pytest.raises(KafkaError, match="TRANSACTION_ABORTABLE"):
        scene.producer.send_offsets_to_transaction({TopicPartition("t", 1): 5}, "g")
    scene.producer.abort_transaction()
    assert [request.committed for request in scene.asked(EndTxnRequest)] == [False]


@pytest.mark.parametrize(
    ("level", "newest"),
    [(1, {}), (2, {ProduceRequest: 11}), (2, {EndTxnRequest: 4}), (2, {TxnOffsetCommitRequest: 4})],
    ids=["level 1", "old leader", "old coordinator", "old coordinator of the group"],
)
def test_the_feature_decides_and_a_broker_without_the_needed_requests_is_refused(
    level: int, newest: dict[type[Request], int]
) -> None:
    """With transaction version 2, the producer refuses a broker without the needed request versions."""
    scene = Scene(Coordinating(), level, newest)
    scene.producer.init_transactions()
    try:
        scene.producer.begin_transaction()
        scene.producer.send("t", b"1")
        scene.producer.send_offsets_to_transaction({TopicPartition("t", 0): 5}, "g")
        scene.producer.commit_transaction()
    except KafkaError as error:
        assert (level, error.code) == (2, ErrorCode.UNSUPPORTED_VERSION)
        assert "transaction version 2 needs version" in error.message
    else:
        assert level == 1
        assert {"AddPartitionsToTxn", "AddOffsetsToTxn"} < set(scene.names())
    finally:
        scene.close()


def test_the_broker_raises_the_epoch_with_each_transaction(servers: str) -> None:
    with Producer(servers) as producer:
        producer.send("epochs", b"0", partition=0).result(10)
    place = TopicPartition("epochs", 0)
    host, port = servers.rsplit(":", 1)
    with Producer(servers, transactional_id="epochs") as producer, Connection(host, int(port)) as connection:
        producer.init_transactions()
        epochs = []
        for number in range(4):
            producer.begin_transaction()
            producer.send("epochs", b"%d" % number, partition=0).result(10)
            producer.send_offsets_to_transaction({place: number}, "epochs")
            described = connection.send(DescribeTransactionsRequest(transactional_ids=["epochs"]))
            epochs.append(described.transaction_states[0].producer_epoch)
            if number % 2:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    assert epochs == list(range(epochs[0], epochs[0] + 4))
    with Consumer(servers, "epochs", until="end", isolation_level="read_committed") as consumer:
        assert [record.value for record in consumer] == [b"0", b"1", b"3"]
    with Consumer(servers, group="epochs") as consumer:
        assert consumer.committed(place) == {place: OffsetAndMetadata(3)}
