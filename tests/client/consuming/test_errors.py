"""Tests of errors in a consumer. The consumer reports the offset of a bad record, and loses no other records."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import hmb
from hmb.client import Connection, Consumer, Producer, TopicPartition
from hmb.client.errors import DeserializationError
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.fetch import FetchRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from hmb.protocol.schema import Request, Response
from hmb.records import Record, RecordBatch, encode_batch
from hmb.records.changed_batch import with_records
from tests.client.consuming.scripted_log import RECORDS, Late, Log, poll_all
from tests.client.scripted_broker import ScriptedBroker

T0 = TopicPartition("t", 0)


def number(data: bytes) -> int:
    return int(data)


@pytest.mark.parametrize("part", ["key", "value"])
def test_a_record_that_cannot_be_deserialized_is_named_and_loses_no_other(part: str) -> None:
    values = [b"0", b"1", b"two", b"3"]
    records = [Record(timestamp=1, **{part: value}) for value in values]  # type: ignore[arg-type]
    options: dict[str, Any] = {f"{part}_deserializer": number}
    with ScriptedBroker(Log(encode_batch(records), 4)) as broker, Consumer(broker.address, "t", **options) as consumer:
        assert [getattr(record, part) for record in consumer.poll(10)] == [0, 1]
        for _ in range(2):  # Every poll raises the error until the application reacts.
            with pytest.raises(
                DeserializationError, match=rf"t-0, offset 2: the {part} cannot be .* seek\(.*, 3\)"
            ) as caught:
                consumer.poll(10)
        assert getattr(caught.value.record, part) == b"two"
        assert consumer.position(T0) == 2
        consumer.seek(T0, 3)
        assert [getattr(record, part) for record in consumer.poll(10)] == [3]


def test_null_is_not_deserialized() -> None:
    log = Log(encode_batch([Record(timestamp=1)]), 1)
    with (
        ScriptedBroker(log) as broker,
        Consumer(broker.address, "t", key_deserializer=number, value_deserializer=number) as consumer,
    ):
        assert [(record.key, record.value) for record in consumer.poll(10)] == [(None, None)]


def test_arrow_batches_and_deserializers_exclude_each_other() -> None:
    with (
        ScriptedBroker(Log(encode_batch(RECORDS), 4)) as broker,
        Consumer(broker.address, "t", value_deserializer=number) as consumer,
        pytest.raises(ValueError, match="Arrow columns hold bytes"),
    ):
        consumer.poll_arrow()


def test_bytes_that_are_not_batches_are_reported_with_their_position() -> None:
    with ScriptedBroker(Log(b"garbage" * 100, 4)) as broker, Consumer(broker.address, "t") as consumer:
        problem = "cannot read t-0 from offset 0: neither a batch nor a message begins at 0"
        with pytest.raises(KafkaError, match=problem) as caught:
            consumer.poll(10)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("by_arrow", [False, True])
def test_records_before_invalid_bytes_are_returned(by_arrow: bool) -> None:
    class Damaged(Log):
        """A log in which each fetch from offset 2 or a later offset begins with a damaged batch."""

        def __call__(self, request: Request, version: int) -> Response | None:
            if isinstance(request, FetchRequest) and request.topics[0].partitions[0].fetch_offset == 2:
                self.data = b"garbage" * 100
            return super().__call__(request, version)

    log = Damaged(encode_batch(RECORDS[:2]) + b"garbage" * 100, 4)
    with ScriptedBroker(log) as broker, Consumer(broker.address, "t") as consumer:
        if by_arrow:
            batch = consumer.poll_arrow(10)
            assert batch is not None
            assert batch.column("value").to_pylist() == [b"0", b"1"]
        else:
            assert [record.value for record in consumer.poll(10)] == [b"0", b"1"]
        with pytest.raises(KafkaError, match="cannot read t-0 from offset 2: neither a batch nor a message"):
            consumer.poll(10)


def test_control_c_while_a_batch_is_decoded_loses_nothing() -> None:
    interrupts = [KeyboardInterrupt()]

    def deserialize(data: bytes) -> bytes:
        if interrupts:
            raise interrupts.pop()
        return data

    log = Log(encode_batch(RECORDS), 4)
    with ScriptedBroker(log) as broker, Consumer(broker.address, "t", value_deserializer=deserialize) as consumer:
        with pytest.raises(KeyboardInterrupt):
            consumer.poll(10)
        assert poll_all(consumer, 4) == [b"0", b"1", b"2", b"3"]


def test_an_unknown_codec_is_named_with_the_place_of_the_batch() -> None:
    data = bytearray(encode_batch(RECORDS))
    data[22] = 5
    with ScriptedBroker(Log(bytes(data), 4)) as broker, Consumer(broker.address, "t", check_crcs=False) as consumer:
        with pytest.raises(KafkaError, match="t-0, batch that ends at offset 3: no compression codec has the number 5"):
            consumer.poll(10)
        consumer.seek(T0, 4)
        assert consumer.poll() == []


def test_errors_of_a_paused_partition_are_not_raised() -> None:
    with ScriptedBroker(Log(b"garbage" * 100, 4)) as broker, Consumer(broker.address, "t") as consumer:
        with pytest.raises(KafkaError, match="neither a batch nor a message"):
            consumer.poll(10)
        consumer.pause(T0)
        assert consumer.poll() == []
        consumer.resume(T0)
        with pytest.raises(KafkaError, match="neither a batch nor a message"):
            consumer.poll()


def test_records_before_an_error_are_fetched_again_after_a_pause() -> None:
    values = [b"0", b"1", b"two", b"3"]
    log = Log(encode_batch([Record(timestamp=1, value=value) for value in values]), 4)
    with ScriptedBroker(log) as broker, Consumer(broker.address, "t", value_deserializer=number) as consumer:
        assert [record.value for record in consumer.poll(10, 1)] == [0]
        consumer.pause(T0)
        consumer.resume(T0)
        assert [record.value for record in consumer.poll(10)] == [1]
        with pytest.raises(DeserializationError, match="offset 2"):
            consumer.poll(10)


def test_the_position_of_a_paused_partition_that_cannot_be_settled_is_an_error() -> None:
    def refuse(request: Request, version: int) -> Response | None:
        assert isinstance(request, OffsetFetchRequest | FindCoordinatorRequest)
        if isinstance(request, OffsetFetchRequest):
            code = ErrorCode.GROUP_AUTHORIZATION_FAILED
            group = OffsetFetchResponse.OffsetFetchResponseGroup(group_id="g", error_code=code)
            return OffsetFetchResponse(groups=[group])
        coordinator = FindCoordinatorResponse.Coordinator(key="g", host="127.0.0.1", port=broker.port)
        return FindCoordinatorResponse(coordinators=[coordinator])

    with ScriptedBroker(refuse) as broker, Consumer(broker.address, group="g", auto_commit=False) as consumer:
        consumer.assign([T0])
        consumer.pause(T0)
        with pytest.raises(KafkaError, match="GROUP_AUTHORIZATION_FAILED"):
            consumer.position(T0)


def test_damage_in_arrow_batches_is_raised_after_the_intact_records() -> None:
    damaged = encode_batch(RECORDS[2:], base_offset=2)[:-1] + b"?"
    with (
        ScriptedBroker(Log(encode_batch(RECORDS[:2]) + damaged, 4)) as broker,
        Consumer(broker.address, "t") as consumer,
    ):
        batch = consumer.poll_arrow(10)
        assert batch is not None
        assert batch.column("value").to_pylist() == [b"0", b"1"]
        assert consumer.position(T0) == 2
        with pytest.raises(KafkaError, match=r"t-0, batch that ends at offset 3: .*CRC"):
            consumer.poll_arrow(10)


def test_records_with_wrong_headers_are_errors_after_the_intact_records_in_arrow_batches_too() -> None:
    lying = with_records(RecordBatch.parse(encode_batch(RECORDS[2:], base_offset=2)), b"no records", 2, 1)
    with ScriptedBroker(Log(encode_batch(RECORDS[:2]) + lying, 4)) as broker, Consumer(broker.address, "t") as consumer:
        batch = consumer.poll_arrow(10)
        assert batch is not None
        assert batch.column("value").to_pylist() == [b"0", b"1"]
        with pytest.raises(KafkaError, match="t-0, batch that ends at offset 3: a record claims"):
            consumer.poll_arrow(10)
        assert consumer.position(T0) == 2


def test_more_bytes_than_a_column_holds_are_an_error_that_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode_batch(RECORDS[:2]) + encode_batch(RECORDS[2:], base_offset=2)
    with ScriptedBroker(Log(data, 4)) as broker, Consumer(broker.address, "t") as consumer:
        monkeypatch.setattr("hmb.records.fast.columns.INT32_MAX", 20)
        with pytest.raises(KafkaError, match=r"t-0: .* bytes are too many for one column: use a smaller max_bytes"):
            consumer.poll_arrow(10)
            consumer.poll_arrow(10)
        monkeypatch.undo()
        consumer.seek(T0, consumer.position(T0))
        batch = consumer.poll_arrow(10)
        assert batch is not None
        assert batch.num_rows == 4


@pytest.mark.parametrize("by_arrow", [False, True])
def test_control_c_before_records_are_returned_leaves_them_in_the_buffer(
    monkeypatch: pytest.MonkeyPatch, by_arrow: bool
) -> None:
    where = "hmb.client.consuming.arrow.columns" if by_arrow else "hmb.client.consuming.buffer.consumer_records"

    def interrupted(*anything: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    with ScriptedBroker(Log(encode_batch(RECORDS), 4)) as broker, Consumer(broker.address, "t") as consumer:
        monkeypatch.setattr(where, interrupted)
        with pytest.raises(KeyboardInterrupt):
            consumer.poll_arrow(10) if by_arrow else consumer.poll(10)
        assert poll_all(consumer, 4) == [b"0", b"1", b"2", b"3"]


def test_an_arrow_batch_may_follow_records() -> None:
    with (
        ScriptedBroker(Log(encode_batch(RECORDS), 4)) as broker,
        Consumer(broker.address, "t", until="end") as consumer,
    ):
        assert [record.value for record in consumer.poll(10, 1)] == [b"0"]
        assert [value for batch in consumer.arrow_batches() for value in batch.column("value").to_pylist()] == [
            b"1", b"2", b"3",
        ]  # fmt: skip
        assert consumer.at_end


def test_partitions_that_were_not_asked_for_are_ignored() -> None:
    log = Log(encode_batch(RECORDS), 4)
    with ScriptedBroker(log) as broker, Consumer(broker.address, offset=0) as consumer:
        consumer.assign({TopicPartition("other", 0): 0})
        assert consumer.poll(0.2) == []
        consumer.assign({T0: 0})
        assert poll_all(consumer, 4) == [b"0", b"1", b"2", b"3"]


def test_control_c_in_the_middle_of_an_answer_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedBroker(Log(encode_batch(RECORDS), 4)) as broker, Consumer(broker.address, "t") as consumer:
        receive = Connection.receive

        def interrupted(connection: Connection, timeout: float | None = None) -> Any:
            monkeypatch.setattr(Connection, "receive", receive)
            raise KeyboardInterrupt

        monkeypatch.setattr(Connection, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            consumer.poll(10)
        assert poll_all(consumer, 4) == [b"0", b"1", b"2", b"3"]


def test_a_second_thread_gets_an_error() -> None:
    late = Late(Log(encode_batch(RECORDS), 4), 1, 20)
    with ScriptedBroker(late) as broker, Consumer(broker.address, "t") as consumer:
        polling = threading.Thread(target=consumer.poll, args=(10,))
        polling.start()
        while not broker.requests or not isinstance(broker.requests[-1][0], FetchRequest):
            time.sleep(0.001)
        for use in (consumer.poll, consumer.close, consumer.commit, lambda: consumer.seek(T0, 0)):
            with pytest.raises(RuntimeError, match="the consumer is in use by another thread"):
                use()
        late.over.set()
        polling.join()
        assert consumer.position(T0) == 4


def test_a_closed_consumer_raises_an_error() -> None:
    with ScriptedBroker(Log(encode_batch(RECORDS), 4)) as broker:
        consumer = Consumer(broker.address, "t")
        consumer.close()
        consumer.close()
        for use in (consumer.poll, consumer.poll_arrow, consumer.unsubscribe, lambda: next(iter(consumer))):
            with pytest.raises(RuntimeError, match="the consumer is closed"):
                use()


def test_without_a_group_nothing_is_committed() -> None:
    with (
        ScriptedBroker(Log(encode_batch(RECORDS), 4)) as broker,
        Consumer(broker.address, "t") as consumer,
        pytest.raises(ValueError, match="a consumer without a group cannot commit"),
    ):
        consumer.commit()


@pytest.mark.parametrize("timeout", [None, 5])
def test_closing_commits_the_returned_records(servers: str, timeout: float | None) -> None:
    topic = f"close-{timeout}"
    with Producer(servers) as producer:
        for number in range(3):
            producer.send(topic, b"%d" % number, partition=0).result()
    consumer = Consumer(servers, topic, group=topic)
    assert poll_all(consumer, 2) == [b"0", b"1"]
    consumer.close(timeout)
    with Consumer(servers, topic, group=topic) as consumer:
        assert poll_all(consumer, 1) == [b"2"]


def test_a_callback_that_raises_leaves_poll_and_spoils_nothing(servers: str) -> None:
    with Producer(servers) as producer:
        producer.send("callback", b"1", partition=0).result()

    def on_assigned(partitions: list[TopicPartition]) -> None:
        raise LookupError("the program's own")

    with Consumer(servers, "callback", group="callback", on_assigned=on_assigned) as consumer:
        with pytest.raises(LookupError, match="the program's own"):
            poll_all(consumer, 1)
        assert poll_all(consumer, 1) == [b"1"]


def test_an_unknown_error_of_the_server_is_retried() -> None:
    """The consumer retries a fetch after UNKNOWN_SERVER_ERROR, as Kafka's consumer does.

    Before a bug was fixed, a poll raised this error at once.
    """
    with hmb.Broker() as broker:
        broker.produce("t", "a", "b")
        fault = broker.faults.add("FETCH", topic="t", error="UNKNOWN_SERVER_ERROR", times=2)
        with Consumer(broker.bootstrap_servers, "t") as consumer:
            assert poll_all(consumer, 2) == [b"a", b"b"]
        assert fault.count == 2


def test_an_unknown_error_of_the_server_that_lasts_is_raised() -> None:
    with hmb.Broker() as broker:
        broker.produce("t", "a")
        broker.faults.add("FETCH", topic="t", error="UNKNOWN_SERVER_ERROR")
        with (
            Consumer(broker.bootstrap_servers, "t", retry_for=0.2) as consumer,
            pytest.raises(KafkaError, match="UNKNOWN_SERVER_ERROR"),
        ):
            poll_all(consumer, 1)
