"""Tests of requests whose fields contradict each other. The expected error codes are those of Kafka 4.3.0.

The directory tests/conformance/same_bytes contains further tests of requests whose fields contradict each other.
These tests send each request to HMB and to Kafka, and compare the two responses.
"""

from __future__ import annotations

import struct
import uuid

import pytest

from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.delete_topics import DeleteTopicsRequest
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest
from hmb.protocol.messages.list_offsets import ListOffsetsRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.messages.produce import ProduceRequest
from hmb.records import Record, crc32c, encode_batch
from tests.broker.conftest import Asker

Doomed = DeleteTopicsRequest.DeleteTopicState
Creatable = CreateTopicsRequest.CreatableTopic


def test_a_topic_that_is_to_be_deleted_twice_stays(ask: Asker) -> None:
    topic = ask.broker.topics.create("t", 1)
    for twice in (
        [Doomed(name="t"), Doomed(name="t")],
        [Doomed(topic_id=topic.id), Doomed(topic_id=topic.id)],
        [Doomed(name="t"), Doomed(topic_id=topic.id)],
    ):
        (answer,) = ask(DeleteTopicsRequest(topics=twice), 6).responses
        assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert ask(DeleteTopicsRequest(topic_names=["t", "t"]), 1).responses[0].error_code == ErrorCode.INVALID_REQUEST
    assert "t" in ask.broker.topics


def test_a_topic_to_delete_has_a_name_or_an_id(ask: Asker) -> None:
    topic = ask.broker.topics.create("t", 1)
    wanted = [Doomed(), Doomed(name="t", topic_id=topic.id), Doomed(name=""), Doomed(topic_id=uuid.UUID(int=1))]
    assert [answer.error_code for answer in ask(DeleteTopicsRequest(topics=wanted), 6).responses] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]
    assert "t" in ask.broker.topics


def test_metadata_returns_a_topic_once(ask: Asker) -> None:
    topic = ask.broker.topics.create("t", 1)
    by_name = [MetadataRequest.MetadataRequestTopic(name="t")] * 2
    by_id = [MetadataRequest.MetadataRequestTopic(name=None, topic_id=topic.id)] * 2
    for wanted in (by_name, by_id):
        assert [answer.name for answer in ask(MetadataRequest(topics=wanted), 12).topics] == ["t"]


def test_offsets_asked_for_twice_are_refused_once(ask: Asker) -> None:
    ask.broker.topics.create("t", 2)
    wanted = [
        ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(partition_index=n, timestamp=-1) for n in (0, 1, 0)
    ]
    (answer,) = ask(
        ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=wanted)]), 1
    ).topics
    assert {p.partition_index: p.error_code for p in answer.partitions} == {0: ErrorCode.INVALID_REQUEST, 1: 0}
    assert len(answer.partitions) == 2


@pytest.mark.parametrize(("timestamp", "version"), [(-3, 6), (-4, 7), (-5, 8), (-6, 10), (-7, 11), (-(2**63), 1)])
def test_special_times_that_a_version_does_not_know(ask: Asker, timestamp: int, version: int) -> None:
    """The broker refuses a negative timestamp that has no meaning in this version of ListOffsets.

    The broker checks the timestamp before the topic, so an unknown topic gets the same error as an existing one.
    """
    wanted = [ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(timestamp=timestamp)]
    request = ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name="nobody", partitions=wanted)])
    assert ask(request, version).topics[0].partitions[0].error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(("producer_id", "epoch"), [(5, -1), (-1, 5)])
def test_a_producer_sends_both_id_and_epoch_or_neither(ask: Asker, producer_id: int, epoch: int) -> None:
    request = InitProducerIdRequest(transactional_id=None, producer_id=producer_id, producer_epoch=epoch)
    assert ask(request, 3).error_code == ErrorCode.INVALID_REQUEST


def test_the_checks_of_a_new_topic_have_a_fixed_order(ask: Asker) -> None:
    """The broker checks the name of a new topic first, then its settings, its partition count and its replicas."""
    ask.broker.topics.create("there", 1)
    bad = [Creatable.CreatableTopicConfig(name="colour", value="blue")]
    for wanted, code in (
        (Creatable(name="a/b", num_partitions=0, replication_factor=3, configs=bad), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (Creatable(name="there", num_partitions=0, replication_factor=3, configs=bad), ErrorCode.TOPIC_ALREADY_EXISTS),
        (Creatable(name="t", num_partitions=0, replication_factor=3, configs=bad), ErrorCode.INVALID_CONFIG),
        (Creatable(name="t", num_partitions=0, replication_factor=3), ErrorCode.INVALID_PARTITIONS),
        (Creatable(name="t", num_partitions=1, replication_factor=3), ErrorCode.INVALID_REPLICATION_FACTOR),
    ):
        (answer,) = ask(CreateTopicsRequest(topics=[wanted], validate_only=True), 7).topics
        assert answer.error_code == code
    (good,) = ask(CreateTopicsRequest(topics=[Creatable(name="t", num_partitions=1, replication_factor=1)]), 7).topics
    assert (good.error_code, good.error_message) == (0, None)


GOOD = encode_batch([Record(0, 0, b"k", b"v", ())])


def produced(ask: Asker, data: bytes, topic: str = "t") -> tuple[int, int]:
    """Send a Produce request with one batch. Return the error code and the log start offset of the response."""
    partition = ProduceRequest.TopicProduceData.PartitionProduceData(records=memoryview(data))
    topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=[partition])]
    (answer,) = ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), 9).responses[0].partition_responses
    return answer.error_code, answer.log_start_offset


@pytest.mark.parametrize("data", [b"x", GOOD[:60], GOOD[:-1], GOOD + b"x", GOOD + GOOD])
def test_a_produce_of_anything_but_one_whole_batch_is_invalid(ask: Asker, data: bytes) -> None:
    ask.broker.topics.create("t", 1)
    assert produced(ask, data) == (ErrorCode.INVALID_RECORD, -1)


@pytest.mark.parametrize(("position", "value"), [(57, 0), (57, 2), (57, -1), (23, 5), (23, -1)])
def test_impossible_record_counts_are_invalid_if_the_checksum_is_correct(ask: Asker, position: int, value: int) -> None:
    """If a batch has an impossible record count and a correct CRC, the error code is INVALID_RECORD.

    If the broker returned CORRUPT_MESSAGE, clients would send the same wrong batch again.
    """
    ask.broker.topics.create("t", 1)
    lying = bytearray(GOOD)
    struct.pack_into(">i", lying, position, value)
    assert produced(ask, bytes(lying)) == (ErrorCode.CORRUPT_MESSAGE, -1)
    struct.pack_into(">I", lying, 17, crc32c(memoryview(lying)[21:]))
    assert produced(ask, bytes(lying)) == (ErrorCode.INVALID_RECORD, 0)


def test_a_record_count_too_large_for_the_batch_size_is_invalid(ask: Asker) -> None:
    """The broker refuses a small batch that claims 2 billion records.

    If it accepted the batch, it would use 2 billion offsets.
    """
    log = ask.broker.topics.create("t", 1).partitions[0]
    lying = bytearray(GOOD)
    struct.pack_into(">i", lying, 23, 2**31 - 2)
    struct.pack_into(">i", lying, 57, 2**31 - 1)
    struct.pack_into(">I", lying, 17, crc32c(memoryview(lying)[21:]))
    assert produced(ask, bytes(lying)) == (ErrorCode.INVALID_RECORD, 0)
    assert log.log_end_offset == 0


@pytest.mark.parametrize("offset", [5, -1])
def test_offsets_of_a_new_batch_begin_at_0(ask: Asker, offset: int) -> None:
    log = ask.broker.topics.create("t", 1).partitions[0]
    assert produced(ask, encode_batch([Record(0, 0, b"k", b"v", ())], base_offset=offset)) == (
        ErrorCode.INVALID_RECORD,
        0,
    )
    assert log.log_end_offset == 0


def test_clients_do_not_write_to_the_brokers_own_topics(ask: Asker) -> None:
    log = ask.broker.topics.create("__consumer_offsets", 1).partitions[0]
    assert produced(ask, GOOD, "__consumer_offsets") == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    assert log.log_end_offset == 0
    (described,) = ask(MetadataRequest(topics=None), 12).topics
    assert described.is_internal


def test_a_whole_number_has_no_underscores(ask: Asker) -> None:
    configs = [Creatable.CreatableTopicConfig(name="retention.ms", value="1_000")]
    wanted = Creatable(name="t", num_partitions=1, replication_factor=1, configs=configs)
    assert ask(CreateTopicsRequest(topics=[wanted]), 7).topics[0].error_code == ErrorCode.INVALID_CONFIG
