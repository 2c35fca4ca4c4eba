"""Each API, asked through dispatch in the versions that differ."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

import pytest

from hmb.broker.dispatch import Dispatcher
from hmb.broker.errors import CloseConnection
from hmb.broker.handlers import HANDLERS
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.delete_topics import DeleteTopicsRequest
from hmb.protocol.messages.fetch import FetchRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest
from hmb.protocol.messages.list_offsets import ListOffsetsRequest
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.protocol.messages.produce import ProduceRequest
from hmb.records import Codec, Message, Record, encode_batch, iter_batches, read_records
from hmb.records.message import encode_message
from tests.broker.conftest import LISTENER, Asker
from tests.storage.conftest import batch, messages

NO_ID = uuid.UUID(int=0)
Creatable = CreateTopicsRequest.CreatableTopic


def produce(
    data: bytes | memoryview, *, topic: str = "t", partition: int = 0, acks: int = 1, id: uuid.UUID = NO_ID
) -> ProduceRequest:
    partition_data = ProduceRequest.TopicProduceData.PartitionProduceData(index=partition, records=memoryview(data))
    topic_data = ProduceRequest.TopicProduceData(name=topic, topic_id=id, partition_data=[partition_data])
    return ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=[topic_data])


def fetch(
    offset: int = 0,
    *,
    topics: Sequence[str] = ("t",),
    id: uuid.UUID = NO_ID,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    epoch: int = -1,
) -> FetchRequest:
    partition = FetchRequest.FetchTopic.FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=partition_max_bytes, current_leader_epoch=epoch
    )
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=[FetchRequest.FetchTopic(topic=topic, topic_id=id, partitions=[partition]) for topic in topics],
    )


def outcome(response: object) -> int:
    """The error code of the only partition that a produce or fetch answers."""
    topic = response.responses[0]  # type: ignore[attr-defined]
    partitions = getattr(topic, "partition_responses", None) or topic.partitions
    code: int = partitions[0].error_code
    return code


@pytest.mark.parametrize("version", ApiVersionsRequest.versions)
def test_api_versions_lists_what_is_served(ask: Asker, version: int) -> None:
    response = ask(ApiVersionsRequest(client_software_name="test", client_software_version="1"), version)
    ranges = {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}
    assert ranges[ApiKey.PRODUCE] == (0, 13)
    assert ranges[ApiKey.FETCH] == (0, 18)
    assert set(ranges) == {request.api_key for request in HANDLERS}


@pytest.mark.parametrize("name", ["", "a client", "-a", "a.", "a/b", "a\n"])
def test_a_client_that_tells_its_name_tells_a_proper_one(ask: Asker, name: str) -> None:
    for names in ((name, "1.0"), ("client", name)):
        response = ask(ApiVersionsRequest(client_software_name=names[0], client_software_version=names[1]), 3)
        assert (response.error_code, response.api_keys) == (ErrorCode.INVALID_REQUEST, [])


def test_api_versions_of_the_future_is_answered_in_version_0(ask: Asker) -> None:
    answer = ask.raw(bytes.fromhex("0012 0063 00000007 0001 63") + b"whatever comes in version 99")
    assert answer is not None
    correlation_id, error_code, count = answer[:4], answer[4:6], answer[6:10]
    assert (correlation_id, error_code) == (b"\0\0\0\x07", b"\0\x23")
    assert len(answer) == 10 + 6 * int.from_bytes(count, "big")


@pytest.mark.parametrize(
    "frame", [b"", b"\0\x12", bytes.fromhex("0000 0063 00000007 0001 63"), bytes.fromhex("03e7 0000 00000007 0001 63")]
)
def test_what_cannot_be_understood_closes_the_connection(ask: Asker, frame: bytes) -> None:
    with pytest.raises(CloseConnection):
        ask.raw(frame)


@pytest.mark.parametrize("version", MetadataRequest.versions)
def test_metadata_makes_a_missing_topic_and_names_its_leader_at_once(ask: Asker, version: int) -> None:
    response = ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="new")]), version)
    assert [(b.node_id, b.host, b.port) for b in response.brokers] == [(0, "broker.example", 9093)]
    (topic,) = response.topics
    assert (topic.error_code, topic.name) == (0, "new")
    assert [(p.partition_index, p.leader_id, p.isr_nodes) for p in topic.partitions] == [(0, 0, [0])]
    assert (topic.topic_id.int != 0) == (version >= 10)


def test_metadata_without_topics_means_all_in_version_0_and_none_later(ask: Asker) -> None:
    ask.broker.topics.create("a", 1)
    assert [t.name for t in ask(MetadataRequest(topics=[]), 0).topics] == ["a"]
    assert ask(MetadataRequest(topics=[]), 1).topics == []
    assert [t.name for t in ask(MetadataRequest(topics=None), 1).topics] == ["a"]


def test_metadata_does_not_make_what_it_must_not(make_asker: Callable[..., Asker]) -> None:
    ask = make_asker(auto_create_topics_enable="false")
    wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in ("no", "a/b", "")]
    assert [t.error_code for t in ask(MetadataRequest(topics=wanted), 4).topics] == [3, 17, 17]
    by_id = [MetadataRequest.MetadataRequestTopic(name=None, topic_id=uuid.UUID(int=5))]
    assert ask(MetadataRequest(topics=by_id), 12).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert ask.broker.topics.all() == []


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0b", "x" * 250, "ünï"])
def test_illegal_topic_names_are_refused_everywhere(ask: Asker, name: str) -> None:
    created = ask(CreateTopicsRequest(topics=[Creatable(name=name, num_partitions=1, replication_factor=1)]), 7)
    assert created.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    for version in (0, 9, 12):
        metadata = ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)]), version)
        assert metadata.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert ask.broker.topics.all() == []


@pytest.mark.parametrize("version", [10, 11])
def test_metadata_refuses_null_names_and_ids_where_they_only_look_possible(ask: Asker, version: int) -> None:
    """The answer has no null name in these versions: it could not be encoded, and the connection died of it."""
    by_null = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=None)])
    by_id = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t", topic_id=uuid.UUID(int=1))])
    for request, name in ((by_null, ""), (by_id, "t")):
        (answer,) = ask(request, version).topics
        assert (answer.error_code, answer.name) == (ErrorCode.INVALID_REQUEST, name)
    assert ask.broker.topics.all() == []


def test_a_topic_without_a_name_is_unknown_by_name_not_by_id(ask: Asker) -> None:
    assert outcome(ask(fetch(topics=[""]), 4)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert outcome(ask(produce(batch(1), topic=""), 9)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert outcome(ask(fetch(topics=[""]), 13)) == ErrorCode.UNKNOWN_TOPIC_ID
    assert outcome(ask(produce(batch(1), topic=""), 13)) == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("version", CreateTopicsRequest.versions)
def test_create_and_delete_topics(ask: Asker, version: int) -> None:
    config = Creatable.CreatableTopicConfig(name="segment.bytes", value="1000")
    wanted = Creatable(name="made", num_partitions=3, replication_factor=1, configs=[config])
    assert ask(CreateTopicsRequest(topics=[wanted]), version).topics[0].error_code == 0
    topic = ask.broker.topics.get("made")
    assert topic is not None and sorted(topic.partitions) == [0, 1, 2]
    assert topic.partitions[0].config.segment_bytes == 1000
    assert ask(CreateTopicsRequest(topics=[wanted]), version).topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    delete = DeleteTopicsRequest(topic_names=["made", "none"])
    codes = [r.error_code for r in ask(delete, min(version, 5)).responses]
    assert codes == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert ask.broker.topics.get("made") is None


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (Creatable(name="t", num_partitions=0, replication_factor=1), ErrorCode.INVALID_PARTITIONS),
        (Creatable(name="t", num_partitions=2**31 - 1, replication_factor=1), ErrorCode.POLICY_VIOLATION),
        (Creatable(name="t", num_partitions=1, replication_factor=3), ErrorCode.INVALID_REPLICATION_FACTOR),
        (Creatable(name="t", num_partitions=1, replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (Creatable(name="a.b", num_partitions=1, replication_factor=1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (
            Creatable(
                name="t",
                num_partitions=-1,
                replication_factor=-1,
                configs=[Creatable.CreatableTopicConfig(name="x", value="y")],
            ),
            ErrorCode.INVALID_CONFIG,
        ),
        (
            Creatable(
                name="t",
                num_partitions=-1,
                replication_factor=-1,
                configs=[Creatable.CreatableTopicConfig(name="segment.bytes", value="1")],
            ),
            ErrorCode.INVALID_CONFIG,
        ),
        (
            Creatable(
                name="t",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[Creatable.CreatableReplicaAssignment(partition_index=0, broker_ids=[1])],
            ),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
    ],
)
def test_topics_that_cannot_be_made(ask: Asker, wanted: Creatable, code: ErrorCode) -> None:
    ask.broker.topics.create("a_b", 1)  # collides with a.b
    (answer,) = ask(CreateTopicsRequest(topics=[wanted]), 7).topics
    assert (answer.error_code, bool(answer.error_message)) == (code, True)
    assert [topic.name for topic in ask.broker.topics.all()] == ["a_b"]


def test_validate_only_and_duplicates_make_nothing(ask: Asker) -> None:
    wanted = Creatable(name="t", num_partitions=2, replication_factor=1)
    (answer,) = ask(CreateTopicsRequest(topics=[wanted], validate_only=True), 7).topics
    assert (answer.error_code, answer.num_partitions) == (0, 2)
    (answer,) = ask(CreateTopicsRequest(topics=[wanted, wanted]), 7).topics
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert ask.broker.topics.all() == []


def test_topics_and_their_settings_survive_a_restart(ask: Asker, make_asker: Callable[..., Asker]) -> None:
    made = ask.broker.topics.create("t", 2, {"segment.bytes": "1000"})
    ask(produce(batch(3), partition=1), 9)
    ask.close()
    again = make_asker().broker.topics.get("t")
    assert again is not None
    assert (again.id, again.configs, sorted(again.partitions)) == (made.id, {"segment.bytes": "1000"}, [0, 1])
    assert again.partitions[1].config.segment_bytes == 1000
    assert again.partitions[1].log_end_offset == 3


@pytest.mark.parametrize("version", ProduceRequest.versions)
def test_produce_in_every_version(ask: Asker, version: int) -> None:
    topic = ask.broker.topics.create("t", 1)
    data = batch(2) if version >= 3 else messages(2, 1 if version == 2 else 0)
    for base_offset in (0, 2):
        (topic_answer,) = ask(produce(data, id=topic.id), version).responses
        (answer,) = topic_answer.partition_responses
        assert (answer.error_code, answer.base_offset) == (0, base_offset)


@pytest.mark.parametrize(
    ("request_", "version", "code"),
    [
        (produce(batch(1), topic="none"), 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (produce(batch(1), partition=5), 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (produce(batch(1), id=uuid.UUID(int=9)), 13, ErrorCode.UNKNOWN_TOPIC_ID),
        (produce(batch(1), acks=2), 9, ErrorCode.INVALID_REQUIRED_ACKS),
        (produce(b""), 9, ErrorCode.INVALID_RECORD),
        (produce(messages(1, 1)), 3, ErrorCode.INVALID_RECORD),
        (produce(batch(1, codec=Codec.ZSTD)), 6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (produce(batch(1, transactional=True)), 9, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (produce(batch(1, transactional=True)), 2, ErrorCode.INVALID_RECORD),
        (produce(batch(1)), 0, ErrorCode.INVALID_RECORD),
        (produce(messages(1, 1, Codec.ZSTD)), 2, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (produce(encode_message(0, 1, 7, -1, None, b"")), 2, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (produce(bytes(batch(1))[:-1] + b"?"), 9, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_produce_errors_are_the_partitions(ask: Asker, request_: ProduceRequest, version: int, code: ErrorCode) -> None:
    topic = ask.broker.topics.create("t", 1)
    assert outcome(ask(request_, version)) == code
    assert topic.partitions[0].log_end_offset == 0


def test_records_of_the_far_future_are_named_in_the_answer(ask: Asker) -> None:
    ask.broker.topics.create("t", 1)
    data = encode_batch([Record(timestamp=at, value=b"v") for at in (5, 2**60, -1, 2**60)])
    (answer,) = ask(produce(memoryview(data)), 9).responses[0].partition_responses
    assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_TIMESTAMP, -1)
    assert [each.batch_index for each in answer.record_errors] == [1, 3]
    assert answer.record_errors[1].batch_index_error_message.startswith(f"Timestamp {2**60} of message with offset 3 ")


def test_acks_0_is_not_answered_and_its_errors_close_the_connection(ask: Asker) -> None:
    topic = ask.broker.topics.create("t", 1)
    assert ask(produce(batch(1), acks=0), 9) is None
    assert topic.partitions[0].log_end_offset == 1
    with pytest.raises(CloseConnection):
        ask(produce(batch(1), acks=0, topic="none"), 9)


def test_a_duplicate_of_an_idempotent_producer_gets_its_first_offset(ask: Asker) -> None:
    ask.broker.topics.create("t", 1)
    ids = [ask(InitProducerIdRequest(transactional_id=None), version) for version in InitProducerIdRequest.versions]
    assert len({(i.producer_id, i.producer_epoch) for i in ids}) == len(ids)
    batches = [batch(2, producer_id=ids[0].producer_id, producer_epoch=0, base_sequence=2 * n) for n in range(6)]
    for data in batches:
        assert outcome(ask(produce(data), 9)) == 0
    answers = [ask(produce(data), 9).responses[0].partition_responses[0] for data in batches]
    assert [a.base_offset for a in answers[1:]] == [2, 4, 6, 8, 10]
    assert answers[0].error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER  # only the last five are kept


def test_producer_ids_are_never_given_out_twice(ask: Asker, make_asker: Callable[..., Asker]) -> None:
    first = ask(InitProducerIdRequest(transactional_id=None), 4).producer_id
    ask.close()
    assert make_asker()(InitProducerIdRequest(transactional_id=None), 4).producer_id > first


@pytest.mark.parametrize("version", FindCoordinatorRequest.versions)
def test_this_broker_coordinates_every_group(ask: Asker, version: int) -> None:
    named = {"coordinator_keys": ["g", "h"]} if version >= 4 else {"key": "g"}
    answer = ask(FindCoordinatorRequest(**named), version)
    found = answer.coordinators or [answer]
    assert [(f.error_code, f.node_id, f.host, f.port) for f in found] == [(0, 0, "broker.example", 9093)] * len(found)
    if version >= 1:
        answer = ask(FindCoordinatorRequest(key_type=1, **named), version)
        assert {f.error_code for f in answer.coordinators or [answer]} == {ErrorCode.INVALID_REQUEST}


def test_transactional_ids_are_refused(ask: Asker) -> None:
    assert ask(InitProducerIdRequest(transactional_id="tx"), 4).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", FetchRequest.versions)
def test_fetch_in_every_version_gives_what_its_clients_can_read(ask: Asker, version: int) -> None:
    topic = ask.broker.topics.create("t", 1)
    log = topic.partitions[0]
    for data in (messages(2, 0), messages(2, 1, Codec.GZIP), batch(3, codec=Codec.ZSTD)):
        log.append(data)
    (topic_answer,) = ask(fetch(id=topic.id), version).responses
    (answer,) = topic_answer.partitions
    assert (answer.error_code, answer.high_watermark) == (0, 7)
    magics = {b.magic for b in iter_batches(answer.records)}
    assert magics == ({0} if version < 2 else {0, 1} if version < 4 else {0, 1, 2})
    found = list(read_records(answer.records))
    assert [r.offset for r in found] == list(range(7))
    assert [r.value for r in found] == [
        r.value for data in (messages(2), messages(2), batch(3)) for r in read_records(data)
    ]
    assert isinstance(next(iter_batches(answer.records)), Message)


def test_fetch_errors_are_the_partitions(ask: Asker) -> None:
    topic = ask.broker.topics.create("t", 1)
    topic.partitions[0].append(batch(3))
    cases = {
        ErrorCode.OFFSET_OUT_OF_RANGE: ask(fetch(4), 12),
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ask(fetch(topics=["none"]), 12),
        ErrorCode.UNKNOWN_TOPIC_ID: ask(fetch(id=uuid.UUID(int=4)), 13),
        ErrorCode.UNKNOWN_LEADER_EPOCH: ask(fetch(epoch=3), 12),
    }
    assert {code: outcome(response) for code, response in cases.items()} == {code: code for code in cases}


def test_fetch_keeps_to_max_bytes_but_for_the_first_batch(ask: Asker) -> None:
    for name in ("a", "b", "c"):
        ask.broker.topics.create(name, 1).partitions[0].append(batch(10))
    size = len(batch(10))
    response = ask(fetch(topics=["a", "b", "c"], max_bytes=10), 12)
    assert [len(topic.partitions[0].records) for topic in response.responses] == [size, 0, 0]
    response = ask(fetch(topics=["a", "b", "c"], max_bytes=2 * size), 12)
    assert [len(topic.partitions[0].records) for topic in response.responses] == [size, size, 0]


def test_an_answer_that_cannot_be_encoded_says_whose_it_was(ask: Asker, caplog: pytest.LogCaptureFixture) -> None:
    """It escaped from the thread, and no line of the log named api, version and client."""
    broken = lambda request, context: MetadataResponse(cluster_id=5)  # type: ignore[arg-type]  # noqa: E731
    ask.dispatcher = Dispatcher(ask.broker, LISTENER, {MetadataRequest: broken})
    with pytest.raises(CloseConnection):
        ask(MetadataRequest(topics=[]), 9)
    assert "MetadataRequest v9 of client 'test' failed" in caplog.text


def list_offsets(ask: Asker, timestamp: int, version: int) -> tuple[int, int, int]:
    partition = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[partition])])
    (answer,) = ask(request, version).topics[0].partitions
    return answer.error_code, answer.timestamp, answer.offset


@pytest.mark.parametrize("version", [v for v in ListOffsetsRequest.versions if v])
def test_list_offsets_by_time_and_by_the_logs_ends(ask: Asker, version: int) -> None:
    log = ask.broker.topics.create("t", 1).partitions[0]
    log.append(batch(3, first_timestamp=100))
    log.append(batch(3, first_timestamp=50))
    assert list_offsets(ask, -1, version) == (0, -1, 6)
    assert list_offsets(ask, -2, version) == (0, -1, 0)
    assert list_offsets(ask, 101, version) == (0, 101, 1)
    assert list_offsets(ask, 103, version) == (0, -1, -1)
    assert list_offsets(ask, -3, version) == ((0, 102, 2) if version >= 7 else (ErrorCode.UNSUPPORTED_VERSION, -1, -1))


def test_list_offsets_version_0_names_the_starts_of_segments(ask: Asker) -> None:
    log = ask.broker.topics.create("t", 1, {"segment.bytes": str(len(batch(2)))}).partitions[0]
    for _ in range(3):
        log.append(batch(2))

    def old_style(timestamp: int, count: int) -> list[int]:
        partition = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
            partition_index=0, timestamp=timestamp, max_num_offsets=count
        )
        request = ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[partition])])
        offsets: list[int] = ask(request, 0).topics[0].partitions[0].old_style_offsets
        return offsets

    assert old_style(-1, 10) == [6, 4, 2, 0]
    assert old_style(-1, 1) == [6]
    assert old_style(-2, 10) == [0]
    assert old_style(0, 10) == []
