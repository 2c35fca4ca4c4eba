"""Tests of a producer whose brokers reject batches, fail, lose leadership, or do not respond."""

from __future__ import annotations

import threading

import pytest

from hmb.client.connection import ConnectionFailed
from hmb.client.producing.delivery import Delivery, Range, RecordMetadata
from hmb.client.producing.producer import Producer
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.schema import Request, Response
from tests.client.producing.produce_scripts import Leaders, Script, delivered, numbers, produced, values
from tests.client.scripted_broker import ScriptedBroker

AGES = 3_600_000  # ms
TOO_LARGE = produced(ErrorCode.MESSAGE_TOO_LARGE)


def refused_with(delivery: Delivery) -> ErrorCode:
    error = delivery.exception(10)
    assert isinstance(error, KafkaError)
    return error.code


def test_a_batch_that_is_too_large_is_split_in_halves_until_it_fits() -> None:
    script = Script(TOO_LARGE, TOO_LARGE, produced(offset=10), produced(offset=20), produced(offset=30))
    with ScriptedBroker(script) as broker, Producer(broker.address, linger_ms=AGES) as producer:
        sent = [producer.send("t", b"%d" % number, timestamp=number) for number in range(8)]
        assert [it.result(10) for it in sent] == [
            RecordMetadata("t", 0, offset, number) for number, offset in enumerate([10, 11, 20, 21, 30, 31, 32, 33])
        ]
        producer.send_many("t", [b"x" for _ in range(6)]).result(10)
        assert producer.metrics().batches_split == 2
    sizes = [len(batch) for batch in values(broker)]
    assert sizes[:5] == [8, 4, 2, 2, 4]
    assert max(sizes[5:]) <= 4  # After the splits, the producer makes only batches that the broker accepts.
    assert numbers(broker)[:5] == [(101, 0, number) for number in (0, 0, 0, 2, 4)]


def test_a_record_that_is_too_large_alone_fails_alone() -> None:
    script = Script(TOO_LARGE, produced(offset=3), TOO_LARGE, TOO_LARGE, produced(offset=4))
    with ScriptedBroker(script) as broker, Producer(broker.address, linger_ms=AGES) as producer:
        small, large, after = (producer.send("t", value) for value in (b"small", b"large", b"after"))
        assert small.result(10).offset == 3
        assert refused_with(large) is ErrorCode.MESSAGE_TOO_LARGE
        assert after.result().offset == 4
    assert numbers(broker)[-2:] == [(101, 0, 1), (101, 0, 1)]


def test_values_of_a_split_batch_have_the_offsets_of_their_ranges() -> None:
    script = Script(TOO_LARGE, produced(offset=10), produced(offset=50))
    with ScriptedBroker(script) as broker, Producer(broker.address) as producer:
        assert producer.send_many("t", [b"1", b"2", b"3", b"4"]).result(10) == [
            Range("t", 0, 10, 2),
            Range("t", 0, 50, 2),
        ]


@pytest.mark.parametrize(
    "lost", [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH]
)
def test_after_unknown_producer_id_the_batch_is_sent_in_a_new_epoch(lost: ErrorCode) -> None:
    script = Script(produced(), produced(lost), produced(offset=7))
    with ScriptedBroker(script) as broker, Producer(broker.address, retry_backoff=0.001) as producer:
        producer.send("t", b"1").result(10)
        assert producer.send("t", b"2").result(10).offset == 7
        producer.send("t", b"3").result(10)
    assert numbers(broker) == [(101, 0, 0), (101, 0, 1), (101, 1, 0), (101, 1, 1)]
    assert values(broker)[1:3] == [[b"2"], [b"2"]]


def test_a_batch_that_may_be_written_is_not_sent_with_another_number() -> None:
    script = Script(True, produced(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER))
    with ScriptedBroker(script) as broker, Producer(broker.address, retry_backoff=0.001) as producer:
        assert refused_with(producer.send("t", b"1")) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        producer.send("t", b"2").result(10)
    assert values(broker) == [[b"1"], [b"1"], [b"2"]]
    assert numbers(broker) == [(101, 0, 0), (101, 0, 0), (101, 1, 0)]


def test_halves_of_a_batch_that_may_be_written_keep_their_numbers() -> None:
    script = Script(True, TOO_LARGE, produced(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER))
    with (
        ScriptedBroker(script) as broker,
        Producer(broker.address, linger_ms=AGES, retry_backoff=0.001) as producer,
    ):
        first, second = producer.send("t", b"1"), producer.send("t", b"2")
        assert refused_with(first) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        second.result(10)
    assert values(broker) == [[b"1", b"2"], [b"1", b"2"], [b"1"], [b"2"]]
    assert numbers(broker) == [(101, 0, 0), (101, 0, 0), (101, 0, 0), (101, 0, 1)]


def test_exhausted_epochs_require_a_new_producer_id() -> None:
    class Old(Script):
        def __call__(self, request: Request, version: int) -> Response | None:
            answer = super().__call__(request, version)
            if isinstance(answer, InitProducerIdResponse):
                answer.producer_epoch = 2**15 - 1
            return answer

    script = Old(True, produced(ErrorCode.INVALID_RECORD))
    with ScriptedBroker(script) as broker, Producer(broker.address, retry_backoff=0.001) as producer:
        assert refused_with(producer.send("t", b"1")) is ErrorCode.INVALID_RECORD
        producer.send("t", b"2").result(10)
    assert [producer_id for producer_id, _, _ in numbers(broker)] == [101, 101, 102]


def test_the_guilty_record_is_named() -> None:
    answer = produced(ErrorCode.INVALID_RECORD, guilty={1: "it has no key"})
    with ScriptedBroker(Script(answer)) as broker, Producer(broker.address, linger_ms=AGES) as producer:
        innocent, guilty = producer.send("t", b"1", b"key"), producer.send("t", b"2")
        assert str(guilty.exception(10)) == "INVALID_RECORD (87): t-0: it has no key"
        assert "rejected together with record 2 of the 2 in its batch: it has no key" in str(innocent.exception())


def test_records_follow_their_leader_in_order() -> None:
    moved = threading.Event()

    def gone(request: Request, version: int) -> Response | None:
        if isinstance(request, ProduceRequest):
            leaders.move(0, 1)
            moved.set()
            return produced(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return Script()(request, version)

    with ScriptedBroker(gone) as old, ScriptedBroker(Script()) as new:
        leaders = Leaders(old, new, leaders=[0])
        with Producer(old.address, retry_backoff=0.001) as producer:
            first = producer.send("t", b"1")
            assert moved.wait(10)
            producer.send("t", b"2").result(10)
            assert first.done()
    assert values(old) == [[b"1"]]
    assert values(new) == [[b"1"], [b"2"]]
    assert numbers(new) == [(101, 0, 0), (101, 0, 1)]


def test_a_leader_that_dies_is_replaced() -> None:
    def dies(request: Request, version: int) -> Response | None:
        if isinstance(request, ProduceRequest):
            leaders.move(0, 1)
            old.stop()
        return Script()(request, version)

    with ScriptedBroker(dies) as old, ScriptedBroker(Script()) as new:
        leaders = Leaders(old, new, leaders=[0])
        with Producer([old.address, new.address], retry_backoff=0.001) as producer:
            producer.send("t", b"1").result(10)
    assert values(new) == [[b"1"]]
    assert numbers(new) == numbers(old) == [(101, 0, 0)]


def test_a_leader_that_does_not_answer_does_not_delay_others() -> None:
    answer = threading.Event()

    def silent(request: Request, version: int) -> Response | None:
        answer.wait(10)
        return Script()(request, version)

    with ScriptedBroker(silent) as slow, ScriptedBroker(Script()) as quick:
        Leaders(slow, quick, leaders=[0, 1])
        with Producer(quick.address, acks=1) as producer:
            waiting = producer.send("t", b"1", partition=0)
            for _ in range(3):
                producer.send("t", b"2", partition=1).result(10)
            assert not waiting.done()
            answer.set()
            waiting.result(10)


def test_a_producer_waits_for_the_leader_of_a_new_topic() -> None:
    with ScriptedBroker(Script()) as broker:
        leaders = Leaders(broker, leaders=[-1])
        asked = threading.Event()
        metadata = broker.metadata

        def later(request: object) -> object:
            answer = metadata(request)  # type: ignore[arg-type]
            asked.set()
            return answer

        broker.metadata = later  # type: ignore[assignment]
        with Producer(broker.address, retry_backoff=0.001) as producer:
            delivery = producer.send("t", b"1")
            assert asked.wait(10)
            leaders.move(0, 0)
            delivery.result(10)


@pytest.mark.parametrize("acks", [0, 1])
def test_idempotence_requires_acks_all(acks: int) -> None:
    with pytest.raises(ValueError, match=r"idempotence needs acks=-1 \(all\), not"):
        Producer("127.0.0.1:1", acks=acks, idempotence=True)
    received = threading.Event()
    script = Script()

    def respond(request: Request, version: int) -> Response | None:
        received.set()
        return script(request, version)

    with ScriptedBroker(respond) as broker, Producer(broker.address, acks=acks) as producer:
        producer.send("t", b"x").result(10)
        assert received.wait(10)  # With acks=0, the delivery succeeds before the broker reads the request.
    assert numbers(broker) == [(-1, -1, -1)]


def test_idempotence_can_be_switched_on_and_off() -> None:
    with ScriptedBroker(Script()) as broker, Producer(broker.address, acks="all", idempotence=False) as producer:
        producer.send("t", b"x").result(10)
    assert numbers(broker) == [(-1, -1, -1)]
    with (
        ScriptedBroker(Script(), {InitProducerIdRequest: -1}) as broker,
        Producer(broker.address, idempotence=True) as producer,
    ):
        assert refused_with(producer.send("t", b"x")) is ErrorCode.UNSUPPORTED_VERSION
    assert values(broker) == []


def test_close_fails_records_that_are_not_delivered_in_time() -> None:
    answer = threading.Event()

    def silent(request: Request, version: int) -> Response | None:
        answer.wait(10)
        return None

    with ScriptedBroker(silent) as broker:
        producer = Producer(broker.address, acks=1)
        in_flight = producer.send("t", b"1")
        queued = producer.send("t", b"2", timestamp=0)
        with pytest.raises(TimeoutError, match=r"not all records were delivered within 0\.01 s"):
            producer.close(0.01)
        for delivery in (in_flight, queued):
            with pytest.raises(TimeoutError, match="not all records were delivered within"):
                delivery.result(0)
        producer.close(10)
        answer.set()


def test_a_batch_without_a_response_is_an_error() -> None:
    other = delivered(ProduceRequest(acks=1, timeout_ms=1, topic_data=[]))
    with ScriptedBroker(Script(other)) as broker, Producer(broker.address) as producer:
        assert "t-0 is missing in the response" in str(producer.send("t", b"x").exception(10))


def test_the_error_of_a_broker_that_never_returns_contains_the_reason() -> None:
    with ScriptedBroker(Script()) as broker:
        producer = Producer(broker.address, delivery_timeout=0.05, request_timeout=0.05, retry_backoff=0.001)
        producer.send("t", b"1").result(10)
        broker.stop()
        late = [producer.send("t", b"%d" % number) for number in range(3)]
        for delivery in late:
            error = delivery.exception(10)
            assert isinstance(error, ConnectionFailed)
            assert "not delivered in 0.05 s" in str(error)
        producer.close(10)


def test_batches_that_waited_too_long_fail_with_the_one_before_them() -> None:
    script = Script()

    def silent(request: Request, version: int) -> Response | None:
        return None if isinstance(request, ProduceRequest) else script(request, version)

    with ScriptedBroker(silent) as broker:
        producer = Producer(broker.address, batch_size=1, delivery_timeout=0.05, request_timeout=0.1)
        queued = [producer.send("t", b"%d" % number) for number in range(20)]
        assert all(isinstance(delivery.exception(10), ConnectionFailed) for delivery in queued)
        producer.close(10)
    # Most batches had no further attempt, because each attempt takes a whole request timeout.
    assert len(values(broker)) < 20
