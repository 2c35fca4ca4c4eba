"""Tests of the sender: several batches in flight, and what happens to later batches if one is rejected or lost."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hmb.client.producing.completion import BatchCompletion
from hmb.client.producing.delivery import Delivery
from hmb.client.producing.producer import Producer
from hmb.protocol.errors import ErrorCode, KafkaError
from tests.client.producing.numbered_log import Fault, NumberedLog
from tests.client.scripted_broker import ScriptedBroker
from tests.waiting import until

AGES = 3_600_000  # ms


class Faults:
    """The planned faults of batches.

    The dict `faults` maps the first value in a batch to a list with one fault for each attempt to send this batch.

    The broker responds to the batch with value 0 only after all other batches are queued. So the producer sends the
    other batches together.
    """

    def __init__(self, faults: dict[int, list[Fault]]) -> None:
        self._faults = {value: list(its_faults) for value, its_faults in faults.items()}
        self.queued = threading.Event()

    def __call__(self, values: list[int]) -> Fault:
        if values[0] == 0:
            assert self.queued.wait(10)
        its_faults = self._faults.get(values[0])
        return its_faults.pop(0) if its_faults else Fault.NONE


@contextmanager
def sent(
    count: int, faults: dict[int, list[Fault]], records: int = 1, **settings: object
) -> Iterator[tuple[NumberedLog, list[Delivery]]]:
    """Send one batch. After its delivery, send `count` more batches together. Yield the log and all deliveries."""
    script = Faults(faults)
    log = NumberedLog(script)
    with (
        ScriptedBroker(log) as broker,
        Producer(broker.address, linger_ms=AGES, retry_backoff=0.001, **settings) as producer,  # type: ignore[arg-type]
    ):
        deliveries = [producer.send("t", b"0")]
        producer._accumulator.seal()
        for first in range(1, count * records + 1, records):
            deliveries += [producer.send("t", b"%d" % value) for value in range(first, first + records)]
            producer._accumulator.seal()
        script.queued.set()
        producer.flush(20)
        yield log, deliveries


def code(delivery: Delivery) -> ErrorCode | None:
    error = delivery.exception(0)
    assert error is None or isinstance(error, KafkaError), error
    return None if error is None else error.code


def firsts(log: NumberedLog) -> list[int]:
    return [value for value, _, _ in log.seen]


def test_each_batch_is_sent_once_and_gets_its_offset() -> None:
    with sent(3, {}) as (log, deliveries):
        assert [delivery.result(10).offset for delivery in deliveries] == [0, 1, 2, 3]
        assert firsts(log) == [0, 1, 2, 3]


def test_five_batches_are_in_flight_after_the_broker_has_accepted_one() -> None:
    are_queued, five_are_there = threading.Event(), threading.Event()
    # The broker responds to batch 0 after the event `are_queued`, and to batch 1 after the event `five_are_there`.
    awaited = {0: are_queued, 1: five_are_there}

    def fault(values: list[int]) -> Fault:
        if values[0] in awaited:
            assert awaited[values[0]].wait(10)
        return Fault.NONE

    log = NumberedLog(fault)
    with ScriptedBroker(log) as broker, Producer(broker.address, linger_ms=AGES) as producer:
        deliveries = []
        for value in range(10):
            deliveries.append(producer.send("t", b"%d" % value))
            producer._accumulator.seal()
        queue = producer._accumulator._queues.of("t", 0)
        are_queued.set()
        until(lambda: queue.in_flight == 5)
        assert not any(delivery.done() for delivery in deliveries[1:])
        five_are_there.set()
        producer.flush(10)
    assert log.values == list(range(10))


@pytest.mark.parametrize("idempotence", [None, False])
def test_the_batches_after_a_rejected_one_wait_until_it_is_sent_again(idempotence: bool | None) -> None:
    with sent(5, {1: [Fault.NOT_LEADER]}, idempotence=idempotence) as (log, deliveries):
        assert all(code(delivery) is None for delivery in deliveries)
    if idempotence is False:  # Without idempotence, the batches in flight overtake the rejected batch.
        assert log.values == [0, 2, 3, 4, 5, 1]
    else:
        assert log.values == [0, 1, 2, 3, 4, 5]
        assert firsts(log) == [0, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5]
        # The batches keep their own sequence numbers.
        assert [number for _, _, number in log.seen[6:]] == [1, 2, 3, 4, 5]
        assert {epoch for _, epoch, _ in log.seen} == {0}


def test_one_batch_in_flight_keeps_the_order_without_idempotence() -> None:
    faults = {1: [Fault.NOT_LEADER], 3: [Fault.IS_LOST]}
    with sent(5, faults, idempotence=False, max_in_flight=1) as (log, _):
        assert log.values == [0, 1, 2, 3, 4, 5]


def test_batches_written_before_the_connection_broke_are_recognized() -> None:
    with sent(5, {5: [Fault.ANSWER_IS_LOST], 2: [Fault.NOT_LEADER_ANY_MORE]}) as (log, deliveries):
        assert [delivery.result().offset for delivery in deliveries] == [0, 1, 2, 3, 4, 5]
    assert log.values == [0, 1, 2, 3, 4, 5]


def test_the_batches_after_a_failed_one_that_was_not_written_get_new_numbers() -> None:
    with sent(5, {2: [Fault.INVALID]}) as (log, deliveries):
        assert [code(it) for it in deliveries] == [None, None, ErrorCode.INVALID_RECORD, None, None, None]
    assert log.values == [0, 1, 3, 4, 5]
    assert log.seen[6:] == [(3, 0, 2), (4, 0, 3), (5, 0, 4)]


def test_the_batches_after_one_that_may_be_written_are_not_written_twice() -> None:
    faults = {1: [Fault.NOT_LEADER_ANY_MORE, Fault.INVALID], 2: [Fault.ANSWER_IS_LOST]}
    with sent(4, faults) as (log, deliveries):
        assert [code(it) for it in deliveries] == [None, ErrorCode.INVALID_RECORD, None, None, None]
    assert log.values == [0, 1, 2, 3, 4]
    assert log.seen[3:] == [(1, 0, 1), (2, 0, 2), (3, 0, 3), (4, 0, 4)]


def test_the_batches_after_one_with_an_unknown_result_fail_if_their_results_are_unknown() -> None:
    faults = {1: [Fault.NOT_LEADER, Fault.INVALID], 2: [Fault.NOT_LEADER]}
    with sent(4, faults) as (log, deliveries):
        lost = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert [code(it) for it in deliveries] == [None, ErrorCode.INVALID_RECORD, lost, None, None]
    assert log.values == [0, 3, 4]  # Batches 3 and 4 were certainly not written, so they are sent again.
    assert log.seen[-2:] == [(3, 1, 0), (4, 1, 1)]


def test_halves_share_the_numbers_of_the_batch_so_later_batches_keep_theirs() -> None:
    with sent(4, {3: [Fault.TOO_LARGE]}, records=2) as (log, deliveries):
        assert all(code(delivery) is None for delivery in deliveries)
    assert log.values == list(range(9))
    assert log.seen[5:] == [(3, 0, 3), (4, 0, 4), (5, 0, 5), (7, 0, 7)]


def test_a_broker_that_does_not_know_the_producer_gets_one_batch_at_first() -> None:
    """While a broker does not know the producer, the producer sends only one batch at a time.

    Otherwise the broker would accept the second batch after it has rejected the first one.
    """
    with sent(3, {0: [Fault.NOT_LEADER, Fault.NOT_LEADER]}) as (log, _):
        assert log.values == [0, 1, 2, 3]
    assert firsts(log) == [0, 0, 0, 1, 2, 3]


def test_new_batches_do_not_remove_a_retried_batch_from_the_brokers_memory() -> None:
    """At most four new batches may follow a batch that is retried.

    A broker remembers the last five batches of a producer, so it still recognizes the retried batch.
    """
    any_more = Fault.NOT_LEADER_ANY_MORE
    faults = {1: [any_more], 3: [Fault.ANSWER_IS_LOST, Fault.NOT_LEADER], 4: [any_more, any_more]}
    with sent(11, faults) as (log, deliveries):
        assert [delivery.result().offset for delivery in deliveries] == list(range(12))
    assert log.values == list(range(12))


@pytest.mark.parametrize("seed", range(12))
def test_each_record_is_written_once_and_in_order_whatever_happens(seed: int) -> None:
    chance = random.Random(seed)
    harmless = [Fault.IS_LOST, Fault.ANSWER_IS_LOST, Fault.COMES_LATE, Fault.NOT_LEADER, Fault.NOT_LEADER_ANY_MORE]

    def fault(values: list[int]) -> Fault:
        return chance.choice(harmless) if chance.random() < 0.3 else Fault.NONE

    log = NumberedLog(fault, late=lambda: chance.random() < 0.3)
    with (
        ScriptedBroker(log) as broker,
        Producer(broker.address, batch_size=120, linger_ms=0, retry_backoff=0.0001) as producer,
    ):
        deliveries = [producer.send("t", b"%d" % value) for value in range(600)]
        producer.flush(60)
        places = [delivery.result(0).offset for delivery in deliveries]
    assert log.values == list(range(600))
    assert places == log.values


@pytest.mark.parametrize("seed", range(12))
def test_failed_batches_are_not_written_twice_or_out_of_order(seed: int) -> None:
    chance = random.Random(seed)
    spoilt = {chance.randrange(600) for _ in range(10)}

    def fault(values: list[int]) -> Fault:
        if chance.random() < 0.3:
            return chance.choice([fault for fault in Fault if fault is not Fault.INVALID])
        return Fault.INVALID if spoilt.intersection(values) else Fault.NONE

    log = NumberedLog(fault, late=lambda: chance.random() < 0.3)
    with (
        ScriptedBroker(log) as broker,
        Producer(broker.address, batch_size=160, linger_ms=0, retry_backoff=0.0001, delivery_timeout=5) as producer,
    ):
        deliveries = [producer.send("t", b"%d" % value) for value in range(600)]
        producer.flush(60)
    assert max(Counter(log.values).values()) == 1
    assert log.values == sorted(log.values)
    for value, delivery in enumerate(deliveries):
        if delivery.exception(0) is None:
            assert log.values[delivery.result().offset] == value


def test_with_idempotence_at_most_five_batches_are_in_flight() -> None:
    with pytest.raises(ValueError, match="with idempotence, max_in_flight must be at most 5, not 6"):
        Producer("127.0.0.1:1", max_in_flight=6)
    with pytest.raises(ValueError, match="max_in_flight must be at least 1, not 0"):
        Producer("127.0.0.1:1", max_in_flight=0)
    Producer("127.0.0.1:1", max_in_flight=6, acks=1).close()


def test_an_internal_error_while_a_response_is_read_leaves_no_thread_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    def mistaken(*arguments: object) -> None:
        raise RuntimeError("mistaken")

    with ScriptedBroker(NumberedLog(lambda values: Fault.NONE)) as broker, Producer(broker.address) as producer:
        producer.send("t", b"0").result(10)
        with monkeypatch.context() as patch:
            patch.setattr(BatchCompletion, "deliver", mistaken)
            assert str(producer.send("t", b"1").exception(10)) == "mistaken"
        producer.send("t", b"2").result(10)
