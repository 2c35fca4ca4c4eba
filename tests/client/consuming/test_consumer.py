"""Tests of the consumer: where it begins, where it ends, and which records it does not return."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from hmb.client import Consumer, Producer
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.fetch import FetchRequest, FetchResponse
from hmb.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from hmb.protocol.schema import Request, Response
from hmb.records import Codec, Record, encode_batch, encode_message_set
from tests.client.consuming.scripted_log import RECORDS, Log
from tests.client.scripted_broker import ScriptedBroker


def write(servers: str, topic: str, *values: bytes, partition: int = 0) -> None:
    with Producer(servers) as producer:
        for value in values:
            producer.send(topic, value, partition=partition).result()


def values(servers: str, topic: str, **options: object) -> list[bytes | None]:
    return [record.value for record in Consumer(servers, topic, until="end", **options)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("offset", "expected"),
    [("earliest", b"abcde"), ("latest", b""), (0, b"abcde"), (3, b"de"), (5, b""), (-2, b"de"), (-99, b"abcde")],
)
def test_the_start_of_a_consumer(servers: str, offset: object, expected: bytes) -> None:
    topic = f"starts{offset}"
    write(servers, topic, b"a", b"b", b"c", b"d", b"e")
    assert b"".join(value or b"" for value in values(servers, topic, offset=offset, partitions=[0])) == expected


def test_starts_inside_a_batch(servers: str) -> None:
    with Producer(servers, linger_ms=3_600_000) as producer:
        for number in range(10):
            producer.send("inside", b"%d" % number, partition=0)
    assert values(servers, "inside", offset=7, partitions=[0]) == [b"7", b"8", b"9"]


def test_reads_all_partitions_or_some(servers: str) -> None:
    for partition in range(3):
        write(servers, "some", b"%d" % partition, partition=partition)
    assert sorted(map(bytes, filter(None, values(servers, "some")))) == [b"0", b"1", b"2"]
    assert values(servers, "some", partitions=[1]) == [b"1"]
    with pytest.raises(KafkaError, match="topic 'some' has no partition 7; its partitions are 0 to 2"):
        Consumer(servers, "some", partitions=[7])


def test_the_end_is_the_end_at_the_start_of_reading(servers: str) -> None:
    write(servers, "ends", b"before")
    consumer = Consumer(servers, "ends", until="end")
    write(servers, "ends", b"after")
    assert [record.value for record in consumer] == [b"before"]
    assert consumer.poll() == []


def test_latest_returns_records_that_are_produced_after_the_constructor(servers: str) -> None:
    write(servers, "latest", b"old")
    with Consumer(servers, "latest", offset="latest") as consumer:
        assert consumer.poll() == []
        writer = threading.Thread(target=write, args=(servers, "latest", b"new"))
        writer.start()
        assert next(iter(consumer)).value == b"new"
        writer.join()


def test_several_topics(servers: str) -> None:
    write(servers, "one", b"1")
    write(servers, "two", b"2")
    assert sorted(record.topic for record in Consumer(servers, "one", "two", until="end")) == ["one", "two"]
    with Consumer(servers) as consumer, pytest.raises(ValueError, match="nothing to read: subscribe"):
        consumer.poll()


def test_a_topic_that_does_not_exist_is_not_created(servers: str) -> None:
    for _ in range(2):
        with pytest.raises(KafkaError, match="there is no topic 'nowhere'"):
            Consumer(servers, "nowhere")


def test_an_offset_that_does_not_exist(servers: str) -> None:
    write(servers, "short", b"x")
    with pytest.raises(KafkaError, match="short-0 has no offset 9; it starts at 0 and ends before 1") as caught:
        Consumer(servers, "short", offset=9, partitions=[0]).poll(10)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_offset_that_does_not_exist_is_an_error_also_if_reading_ends_at_the_end(servers: str) -> None:
    write(servers, "shorter", b"x")
    with pytest.raises(KafkaError, match="shorter-0 has no offset 9; it starts at 0 and ends before 1") as caught:
        values(servers, "shorter", offset=9, partitions=[0])
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"until": "bogus"}, r"until must be \"end\", None, AtTime\(...\) or an offset of 0 or more, not 'bogus'"),
        ({"offset": "middle"}, "an offset must be .*, not 'middle'"),
        ({"offset": 1.5}, "an offset must be .*, not 1.5"),
        ({"offset": True}, "an offset must be .*, not True"),
        ({"offset": 2**63}, "an offset must be .*, not 9223372036854775808"),
    ],
)
def test_invalid_settings_of_the_consumer(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Consumer("127.0.0.1:1", "t", **options)


@pytest.mark.parametrize("name", ["", "..", "a b"])
def test_an_illegal_name_of_a_topic_is_refused_without_asking_a_broker(name: str) -> None:
    with pytest.raises(KafkaError, match="is not a topic name"):
        Consumer("127.0.0.1:1", name)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_reads_all_formats(magic: int, codec: Codec) -> None:
    data = encode_batch(RECORDS, codec=codec) if magic == 2 else encode_message_set(numbered(RECORDS), magic, codec)
    with ScriptedBroker(Log(data, 4)) as broker:
        assert values(broker.address, "t", offset=1) == [b"1", b"2", b"3"]


def numbered(records: list[Record]) -> list[Record]:
    return [Record(offset, record.timestamp, record.key, record.value) for offset, record in enumerate(records)]


def test_brokers_with_only_version_0_are_supported() -> None:
    log = Log(encode_message_set(numbered(RECORDS), 0), 4)
    with ScriptedBroker(log, {FetchRequest: 0, ListOffsetsRequest: 0}) as broker:
        assert values(broker.address, "t") == [b"0", b"1", b"2", b"3"]


def test_a_message_that_was_cut_is_asked_for_again_with_more_bytes() -> None:
    log = Log(encode_message_set([Record(0, value=b"x" * 1000)], 0), 1)
    with ScriptedBroker(log, {FetchRequest: 0}) as broker:
        assert values(broker.address, "t", max_partition_bytes=300) == [b"x" * 1000]
    assert [size for _, size in log.asked] == [300, 600, 1200]


def test_control_records_are_left_out_and_passed() -> None:
    control = encode_batch([Record(timestamp=1, key=b"\0\0\0\1", value=b"\0" * 6)], base_offset=4, control=True)
    log = Log(encode_batch(RECORDS) + control, 5)
    with ScriptedBroker(log) as broker:
        assert values(broker.address, "t") == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("trouble", [ErrorCode.NOT_LEADER_OR_FOLLOWER, True])
def test_temporary_errors_are_retried(trouble: ErrorCode | bool) -> None:
    with ScriptedBroker(Log(encode_batch(RECORDS), 4, trouble)) as broker:
        assert values(broker.address, "t") == [b"0", b"1", b"2", b"3"]


def test_an_error_that_lasts_is_raised_at_the_end() -> None:
    with (
        ScriptedBroker(Log(b"", 4, *[ErrorCode.NOT_LEADER_OR_FOLLOWER] * 100)) as broker,
        pytest.raises(KafkaError, match="t-0: This broker does not lead"),
    ):
        values(broker.address, "t", retry_for=0.0)


def test_damage_is_reported_with_its_position() -> None:
    data = bytearray(encode_batch(RECORDS))
    data[-1] ^= 1
    with ScriptedBroker(Log(bytes(data), 4)) as broker:
        with pytest.raises(KafkaError, match=r"t-0, batch that ends at offset 3: .*CRC") as caught:
            values(broker.address, "t")
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


class TwoTopics:
    """A broker with the topics "a" and "b". A test chooses the error code and the records of topic "b"."""

    def __init__(self, trouble: ErrorCode, data_of_b: bytes) -> None:
        self.trouble, self.data_of_b = trouble, data_of_b

    def __call__(self, request: Request, version: int) -> Response | None:
        if isinstance(request, ListOffsetsRequest):
            latest = request.topics[0].partitions[0].timestamp == -1
            topic = ListOffsetsResponse.ListOffsetsTopicResponse
            answers = [topic.ListOffsetsPartitionResponse(offset=4 if latest else 0)]
            return ListOffsetsResponse(topics=[topic(name=asked.name, partitions=answers) for asked in request.topics])
        assert isinstance(request, FetchRequest)
        return FetchResponse(responses=[self._records(asked) for asked in request.topics])

    def _records(self, asked: FetchRequest.FetchTopic) -> FetchResponse.FetchableTopicResponse:
        is_b, read = asked.topic == "b", asked.partitions[0].fetch_offset == 4
        data = b"" if read or (is_b and self.trouble) else self.data_of_b if is_b else encode_batch(RECORDS)
        topic = FetchResponse.FetchableTopicResponse
        answer = topic.PartitionData(error_code=self.trouble if is_b else 0, records=memoryview(data))
        return topic(topic=asked.topic, partitions=[answer])


DAMAGED = encode_batch(RECORDS[:2]) + encode_batch(RECORDS[2:], base_offset=2)[:-1] + b"?"


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
@pytest.mark.parametrize(
    ("trouble", "data_of_b", "of_b", "message"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, b"", [], "b-0: "),
        (ErrorCode.NONE, DAMAGED, [b"0", b"1"], "b-0, batch that ends at offset 3: "),
    ],
)
@pytest.mark.parametrize("by_poll", [True, False])
def test_an_error_of_one_partition_loses_nothing_of_another(
    order: tuple[str, str], trouble: ErrorCode, data_of_b: bytes, of_b: list[bytes], message: str, by_poll: bool
) -> None:
    answer = TwoTopics(trouble, data_of_b)
    with ScriptedBroker(answer) as broker, Consumer(broker.address, *order, until="end") as consumer:
        got: list[tuple[str, bytes | None]] = []
        read = iter(lambda: consumer.poll(10), []) if by_poll else ([record] for record in consumer)
        with pytest.raises(KafkaError, match=message):
            for records in read:
                got += [(record.topic, record.value) for record in records]
        assert [value for topic, value in got if topic == "a"] == [b"0", b"1", b"2", b"3"]
        assert [value for topic, value in got if topic == "b"] == of_b
        assert not consumer.at_end
