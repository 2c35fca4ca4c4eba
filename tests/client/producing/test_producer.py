"""Tests of the producer, with a broker and with a scripted broker that fails."""

from __future__ import annotations

import threading
import time

import pytest

import hmb
from hmb.client import Consumer, Producer
from hmb.client.producing.accumulator import Accumulator
from hmb.client.producing.batch import ProducerBatch
from hmb.client.producing.partitioner import partition_of_key
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.schema import Response
from hmb.records import parse_batch, read_records
from tests.client.producing.produce_scripts import Leaders, Script, batches, numbers, produced
from tests.client.scripted_broker import ScriptedBroker


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", [-1, 1])
def test_sent_records_are_read(servers: str, codec: str, acks: int) -> None:
    topic = f"sent-{codec}-{acks}"
    headers = (("source", b"noaa"), ("none", None))
    with Producer(servers, acks=acks, compression=codec) as producer:
        futures = [
            producer.send(topic, b"%d" % number, b"key", headers=headers, timestamp=number) for number in range(500)
        ]
        producer.flush()
        assert all(future.done() for future in futures)
    partition = partition_of_key(b"key", 3)
    places = [future.result() for future in futures]
    assert {(place.topic, place.partition) for place in places} == {(topic, partition)}
    assert [(place.offset, place.timestamp) for place in places] == [(number, number) for number in range(500)]
    got = [(it.offset, it.timestamp, it.key, it.value, it.headers) for it in Consumer(servers, topic, until="end")]
    assert got == [(number, number, b"key", b"%d" % number, headers) for number in range(500)]


def test_nulls_are_not_empty(servers: str) -> None:
    with Producer(servers) as producer:
        producer.send("nulls", None, b"", partition=0)
        producer.send("nulls", b"", None, partition=0)
    got = [(record.key, record.value) for record in Consumer(servers, "nulls", until="end")]
    assert got == [(b"", None), (None, b"")]


def test_acks_0_does_not_wait(servers: str) -> None:
    with Producer(servers, acks=0) as producer:
        assert producer.send("acks0", b"x").result().offset == -1


def test_a_partition_that_does_not_exist(servers: str) -> None:
    with Producer(servers) as producer, pytest.raises(KafkaError, match="topic 'three' has no partition 3"):
        producer.send("three", b"x", partition=3)


def test_a_record_that_is_too_large_fails_alone(servers: str) -> None:
    with Producer(servers, max_request_size=4_000_000) as producer:
        large = producer.send("large", b"x" * 2_000_000, partition=0)
        small = producer.send("large", b"x", partition=0)
    error = large.exception()
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert "large-0" in error.message
    assert small.result().offset == 0


def test_close_waits_at_most_for_its_timeout() -> None:
    with ScriptedBroker(Script()) as broker:
        producer = Producer(broker.address, linger_ms=3_600_000)
        let_go = threading.Event()
        producer.send("t", b"x").add_done_callback(lambda future: let_go.wait())
        with pytest.raises(TimeoutError, match="not all records were delivered within"):
            producer.close(0.01)
        let_go.set()
        producer.close()


@pytest.mark.parametrize("trouble", [True, produced(ErrorCode.NOT_LEADER_OR_FOLLOWER)])
def test_a_retry_sends_the_same_bytes(trouble: Response | bool) -> None:
    script = Script(trouble, trouble, produced(offset=5))
    with ScriptedBroker(script) as broker, Producer(broker.address, retry_backoff=0.001) as producer:
        assert producer.send("t", b"x").result().offset == 5
    first, second, third = batches(broker)
    assert first.view == second.view == third.view
    assert (first.producer_id, first.base_sequence) == (101, 0)


def test_numbers_continue_from_batch_to_batch() -> None:
    with ScriptedBroker(Script()) as broker, Producer(broker.address, linger_ms=3_600_000) as producer:
        for count in (3, 2, 1):
            for _ in range(count):
                producer.send("t", b"x")
            producer.flush()
    assert [(batch.base_sequence, batch.records_count) for batch in batches(broker)] == [(0, 3), (3, 2), (5, 1)]


def test_a_batch_that_was_refused_leaves_its_number_to_the_next_one() -> None:
    script = Script(produced(), produced(ErrorCode.MESSAGE_TOO_LARGE))
    with ScriptedBroker(script) as broker, Producer(broker.address) as producer:
        producer.send("t", b"1").result()
        assert isinstance(producer.send("t", b"2").exception(), KafkaError)
        producer.send("t", b"3").result()
    assert numbers(broker) == [(101, 0, 0), (101, 0, 1), (101, 0, 1)]


def test_after_a_batch_that_may_still_be_written_the_numbers_start_in_a_new_epoch() -> None:
    script = Script(produced(), True, produced(ErrorCode.INVALID_RECORD))
    with ScriptedBroker(script) as broker, Producer(broker.address, retry_backoff=0.001) as producer:
        producer.send("t", b"1").result()
        assert isinstance(producer.send("t", b"2").exception(), KafkaError)
        producer.send("t", b"3").result()
        producer.send("t", b"4").result()
    assert numbers(broker) == [(101, 0, 0), (101, 0, 1), (101, 0, 1), (101, 1, 0), (101, 1, 1)]
    assert script.producer_ids == 1


@pytest.mark.parametrize(
    ("acks", "answer"), [(0, produced()), (1, produced()), (1, produced(ErrorCode.MESSAGE_TOO_LARGE))]
)
def test_a_batch_leaves_its_queue_when_its_futures_are_set_so_that_flush_waits_for_them(
    monkeypatch: pytest.MonkeyPatch, acks: int, answer: Response
) -> None:
    set_before: list[bool] = []
    done = Accumulator.done

    def watched(accumulator: Accumulator, batch: ProducerBatch) -> None:
        set_before.append(batch.result.completed)
        done(accumulator, batch)

    monkeypatch.setattr(Accumulator, "done", watched)
    with ScriptedBroker(Script(answer)) as broker, Producer(broker.address, acks=acks) as producer:
        producer.send("t", b"x")
    assert set_before == [True]


def test_flush_and_close_have_a_time_limit() -> None:
    let_go = threading.Event()
    with ScriptedBroker(Script()) as broker:
        producer = Producer(broker.address, linger_ms=3_600_000, delivery_timeout=0.1, request_timeout=0.1)
        producer.send("t", b"x").add_done_callback(lambda future: let_go.wait())
        producer.send("t", b"y")
        for end in (producer.flush, producer.close):
            with pytest.raises(TimeoutError, match=r"the producer's thread is stuck: .* for 0\.3 s"):
                end()
        let_go.set()
        producer.close()


def test_a_batch_that_the_broker_had_already_counts_as_sent() -> None:
    script = Script(produced(ErrorCode.DUPLICATE_SEQUENCE_NUMBER))
    with ScriptedBroker(script) as broker, Producer(broker.address) as producer:
        assert producer.send("t", b"x").result().offset == -1


def test_order_stays_when_the_first_batch_is_retried() -> None:
    script = Script(True)
    with ScriptedBroker(script) as broker, Producer(broker.address, batch_size=1, retry_backoff=0.001) as producer:
        for value in (b"1", b"2", b"3"):
            producer.send("t", value)
    values = [record.value for batch in batches(broker) for record in read_records(batch.view)]
    assert values == [b"1", b"1", b"2", b"3"]


def test_retries_end_at_the_delivery_timeout() -> None:
    never = Script(*[produced(ErrorCode.NOT_ENOUGH_REPLICAS)] * 1000)
    with (
        ScriptedBroker(never) as broker,
        Producer(broker.address, delivery_timeout=0.05, retry_backoff=0.001) as producer,
    ):
        error = producer.send("t", b"x").exception()
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert "1 records for t-0 not delivered in 0.05 s" in error.message


@pytest.mark.parametrize("hang_ups", [1, 2, 5])
def test_a_broker_that_closed_connections_for_a_while_gets_headers_and_sequence_numbers(hang_ups: int) -> None:
    script = Script()
    with ScriptedBroker(script) as broker, Producer(broker.address, retry_backoff=0.001) as producer:
        producer.send("t", b"x").result()
        broker.hang_ups = hang_ups
        script.answers.append(True)
        producer.send("t", b"y", headers=[("h", b"v")], timestamp=5).result()
    (record,) = read_records(batches(broker)[-1].view)
    assert (record.timestamp, record.headers) == (5, (("h", b"v"),))
    assert [(batch.producer_id, batch.base_sequence) for batch in batches(broker)] == [(101, 0), (101, 1), (101, 1)]


def test_without_init_producer_id_nothing_is_numbered() -> None:
    with (
        ScriptedBroker(Script(), {InitProducerIdRequest: -1}) as broker,
        Producer(broker.address) as producer,
    ):
        producer.send("t", b"x").result()
    assert [batch.producer_id for batch in batches(broker)] == [-1]


@pytest.mark.parametrize(("newest", "magic"), [(0, 0), (1, 0), (2, 1)])
def test_old_brokers_get_old_messages(newest: int, magic: int) -> None:
    with ScriptedBroker(Script(), {ProduceRequest: newest}) as broker, Producer(broker.address) as producer:
        producer.send("t", b"x", b"k").result()
    ((request, version),) = broker.requests
    assert version == newest
    assert isinstance(request, ProduceRequest)
    records = request.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert parse_batch(records).magic == magic


@pytest.mark.parametrize(
    ("compression", "headers", "code"),
    [
        ("zstd", (), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ("none", (("h", b"v"),), ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
    ],
)
def test_apis_that_old_brokers_do_not_have(
    compression: str, headers: tuple[tuple[str, bytes], ...], code: ErrorCode
) -> None:
    with (
        ScriptedBroker(Script(), {ProduceRequest: 2}) as broker,
        Producer(broker.address, compression=compression) as producer,
    ):
        error = producer.send("t", b"x", headers=headers).exception()
    assert isinstance(error, KafkaError)
    assert error.code is code
    assert broker.requests == []


def test_a_thread_that_waits_for_a_record_sends_its_batch() -> None:
    with ScriptedBroker(Script()) as broker, Producer(broker.address, linger_ms=3_600_000) as producer:
        for _ in range(3):
            producer.send("t", b"x").result(10)
        ranges = producer.send_many("t", [b"x"]).result(10)
        assert ranges[0].records == 1


def test_a_callback_may_be_given_to_send() -> None:
    told: list[object] = []
    with ScriptedBroker(Script()) as broker, Producer(broker.address) as producer:
        delivery = producer.send("t", b"x", on_delivery=told.append)
        producer.flush()
    assert told == [delivery]


def test_flush_waits_for_callbacks_and_at_most_for_its_timeout() -> None:
    begun, let_go = threading.Event(), threading.Event()

    def called(delivery: object) -> None:
        begun.set()
        let_go.wait(10)

    with ScriptedBroker(Script()) as broker, Producer(broker.address) as producer:
        delivery = producer.send("t", b"x", on_delivery=called)
        assert begun.wait(10)
        assert delivery.done()
        with pytest.raises(TimeoutError, match=r"not all records were delivered within 0\.01 s"):
            producer.flush(0.01)
        let_go.set()
        producer.flush()


def test_serializers() -> None:
    with (
        ScriptedBroker(Script()) as broker,
        Producer(broker.address, key_serializer=str.encode, value_serializer=lambda it: b"%d" % it) as producer,
    ):
        producer.send("t", 5, "key").result(10)
    (record,) = read_records(batches(broker)[0].view)
    assert (record.key, record.value) == (b"key", b"5")


def test_a_user_defined_partitioner() -> None:
    asked: list[tuple[bytes | None, int]] = []

    def own(key: bytes | None, partitions: int) -> int:
        asked.append((key, partitions))
        return 4 if key else 0

    with ScriptedBroker(Script()) as broker, Producer(broker.address, partitioner=own) as producer:
        assert producer.send("t", b"x").result(10).partition == 0
        with pytest.raises(KafkaError, match="topic 't' has no partition 4; its partitions are 0 to 0"):
            producer.send("t", b"x", b"key")
        with pytest.raises(ValueError, match="value 1: the topic has no partition 4; its partitions are 0 to 0"):
            producer.send_many("t", [b"x", b"y"], [None, b"key"])
    assert asked == [(None, 1), (b"key", 1), (None, 1), (b"key", 1)]


def test_partitions_that_were_added_are_found() -> None:
    with ScriptedBroker(Script()) as broker:
        leaders = Leaders(broker, leaders=[0])
        asked_again = threading.Event()
        with Producer(broker.address, metadata_max_age=0.01) as producer:
            producer.send("t", b"x").result(10)
            metadata = broker.metadata

            def answer(request: MetadataRequest) -> MetadataResponse:
                asked_again.set()
                return metadata(request)

            leaders.leaders.append(0)
            # The producer finds the new partition at once.
            assert producer.send("t", b"x", partition=1).result(10).partition == 1
            broker.metadata = answer
            # The producer also requests the metadata again regularly, because of `metadata_max_age`.
            assert asked_again.wait(10)


def test_metrics_count_requests_and_records() -> None:
    script = Script(True, produced(), produced(ErrorCode.INVALID_RECORD))
    with (
        ScriptedBroker(script) as broker,
        Producer(broker.address, compression="gzip", retry_backoff=0.001, linger_ms=3_600_000) as producer,
    ):
        producer.send_many("t", [b"x" * 1000] * 10).result(10)
        assert producer.send("t", b"y").exception(10)
        producer.send("t", b"queued")
        metrics = producer.metrics()
        assert (metrics.records_delivered, metrics.records_failed, metrics.batches_sent) == (10, 1, 2)
        assert (metrics.records_sent, metrics.records_per_batch, metrics.batches_retried) == (11, 5.5, 1)
        assert metrics.requests_sent == 3
        assert metrics.record_bytes_sent > 10_000 > 1_000 > metrics.batch_bytes_sent
        assert metrics.compression_ratio == metrics.batch_bytes_sent / metrics.record_bytes_sent
        assert 0 < metrics.request_latency_avg <= metrics.request_latency_max
        assert 0 < metrics.buffer_bytes_used < 50


def test_a_higher_level_compresses_more() -> None:
    text = b"".join(b"%d " % (number * number) for number in range(20_000))
    sizes = []
    for level in (1, 9):
        with (
            ScriptedBroker(Script()) as broker,
            Producer(broker.address, compression="gzip", compression_level=level) as producer,
        ):
            producer.send("t", text).result(10)
        sizes.append(batches(broker)[0].size)
    assert sizes[1] < sizes[0] < len(text)


def test_threads_share_a_producer_and_each_threads_records_stay_in_order(servers: str) -> None:
    with Producer(servers, batch_size=500, linger_ms=0, buffer_memory=5_000) as producer:

        def send(name: int) -> None:
            for number in range(300):
                producer.send("shared", b"%d" % number, b"%d" % name, partition=number % 2)
            producer.send_many("shared", [b"%d" % number for number in range(300, 600)], [b"%d" % name] * 300, 0)

        threads = [threading.Thread(target=send, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    found: dict[tuple[bytes | None, int], list[int]] = {}
    for record in Consumer(servers, "shared", until="end"):
        found.setdefault((record.key, record.partition), []).append(int(record.value or b""))
    for name in range(4):
        assert found[b"%d" % name, 0] == [*range(0, 300, 2), *range(300, 600)]
        assert found[b"%d" % name, 1] == list(range(1, 300, 2))


def test_a_callback_may_send(servers: str) -> None:
    done = threading.Event()
    with Producer(servers) as producer:
        producer.send(
            "echo", b"1", on_delivery=lambda it: producer.send("echo", b"2", on_delivery=lambda it: done.set())
        )
        assert done.wait(10)
    assert {record.value for record in Consumer(servers, "echo", until="end")} == {b"1", b"2"}


@pytest.mark.parametrize("transactional_id", [None, "t"])
def test_closing_waits_for_no_broker_if_all_records_are_delivered(transactional_id: str | None) -> None:
    with hmb.Broker() as broker:
        producer = Producer(broker.bootstrap_servers, transactional_id=transactional_id)
        if transactional_id is not None:
            producer.init_transactions()
            producer.begin_transaction()
        producer.send("t", b"1").result()
    started = time.monotonic()
    producer.close()
    assert time.monotonic() - started < 3  # 0.01 s on an idle machine
