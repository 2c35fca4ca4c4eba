"""Tests that `Admin` finds the offset for a timestamp, deletes records, and finds the new leader of a partition."""

from __future__ import annotations

import pytest

import hmb
from hmb.client import TopicPartition
from hmb.client.admin import HIGH_WATERMARK, Admin, ListedOffset, raised
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from hmb.protocol.schema import Request, Response
from tests.client.scripted_broker import ScriptedBroker

ZERO, ONE = TopicPartition("r", 0), TopicPartition("r", 1)


def test_offsets_and_deleted_records(servers: str) -> None:
    with hmb.Producer(servers) as producer:
        for number in range(10):
            producer.send("r", b"x", partition=0, timestamp=1000 + number).result()
    with Admin(servers) as admin:
        assert admin.list_offsets({ZERO: "latest", ONE: "earliest"}) == {
            ZERO: ListedOffset(10, -1, 0),
            ONE: ListedOffset(0, -1, 0),
        }
        assert admin.list_offsets({ZERO: 1005, ONE: "max-timestamp"}) == {
            ZERO: ListedOffset(5, 1005, 0),
            ONE: ListedOffset(-1, -1, -1),
        }
        assert raised(admin.list_offsets({ZERO: "max-timestamp"})[ZERO]).offset == 9
        assert admin.delete_records({ZERO: 3, ONE: 0}) == {ZERO: 3, ONE: 0}
        too_far = admin.delete_records({ZERO: 11})[ZERO]
        assert isinstance(too_far, KafkaError)
        assert too_far.code is ErrorCode.OFFSET_OUT_OF_RANGE
        assert admin.delete_records({ZERO: HIGH_WATERMARK}) == {ZERO: 10}
        missing = TopicPartition("none", 0)
        for found in (admin.list_offsets({ZERO: "latest", missing: "latest"}), admin.delete_records({missing: 1})):
            error = found[missing]
            assert isinstance(error, KafkaError)
            assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_state_of_producers(servers: str) -> None:
    partition = TopicPartition("left", 0)
    with hmb.Producer(servers, transactional_id="left") as producer, Admin(servers) as admin:
        producer.init_transactions()
        with producer.transaction():
            for _ in range(3):
                producer.send("left", b"x", partition=0)
            producer.flush()
            (state,) = raised(admin.describe_producers([partition])[partition])
            assert (state.last_sequence, state.current_txn_start_offset) == (2, 0)
        (state,) = raised(admin.describe_producers([partition])[partition])
        assert state.current_txn_start_offset == -1


class Leader:
    """A broker that answers one request with NOT_LEADER_OR_FOLLOWER, and all others normally."""

    def __init__(self) -> None:
        self.errors = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        self.versions: list[int] = []

    def __call__(self, request: Request, version: int) -> Response:
        assert isinstance(request, ListOffsetsRequest)
        self.versions.append(version)
        topic = ListOffsetsResponse.ListOffsetsTopicResponse(name="r")
        for asked in request.topics[0].partitions:
            topic.partitions.append(
                topic.ListOffsetsPartitionResponse(
                    partition_index=asked.partition_index,
                    error_code=self.errors.pop() if self.errors else 0,
                    offset=5 if version else -1,
                    old_style_offsets=[] if version else [7],
                )
            )
        return ListOffsetsResponse(topics=[topic])


def test_a_leader_that_has_moved_is_found_again() -> None:
    leader = Leader()
    with ScriptedBroker(leader) as broker, Admin(broker.address) as admin:
        assert raised(admin.list_offsets({ZERO: "latest"})[ZERO]).offset == 5
    assert len(leader.versions) == 2


def test_versions_of_old_brokers() -> None:
    leader = Leader()
    with ScriptedBroker(leader, {ListOffsetsRequest: 0}) as broker, Admin(broker.address) as admin:
        assert raised(admin.list_offsets({ZERO: "latest"})[ZERO]) == ListedOffset(7, -1, -1)
        with pytest.raises(KafkaError, match="up to version 0, max-timestamp needs version 7") as caught:
            admin.list_offsets({ZERO: "max-timestamp"})
        assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION
        with pytest.raises(KafkaError, match=r"older than Kafka 0\.11"):
            admin.list_offsets({ZERO: "latest"}, isolation_level="read_committed")
