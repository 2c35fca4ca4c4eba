"""Tests of deliveries: the result of a batch, and the result of each of its records."""

from __future__ import annotations

import logging
import sys
import threading

import pytest

from hmb.client.producing.delivery import BatchResult, BatchSlice, Deliveries, Delivery, Outcome, Range, RecordMetadata
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
REFUSED = KafkaError(ErrorCode.INVALID_RECORD, "t-0: no")


def test_a_record_of_a_batch_has_its_own_offset_and_timestamp() -> None:
    result = BatchResult(P0)
    deliveries = [Delivery(result, index, 1000 + index) for index in range(3)]
    assert not deliveries[0].done()
    result.complete(0, Outcome(3, base_offset=40))
    assert all(delivery.done() for delivery in deliveries)
    assert [it.result() for it in deliveries] == [RecordMetadata("t", 0, 40 + n, 1000 + n) for n in range(3)]


def test_log_append_time_comes_from_the_broker() -> None:
    result = BatchResult(P0)
    result.complete(0, Outcome(1, base_offset=4, log_append_time=99))
    assert Delivery(result, 0, 5).result() == RecordMetadata("t", 0, 4, 99)


def test_waiting_has_an_end() -> None:
    delivery = Delivery(BatchResult(P0), 0, 0)
    with pytest.raises(TimeoutError, match="a record for t-0 was not delivered within 0 s"):
        delivery.result(0)


def test_waiting_threads_get_the_result() -> None:
    result = BatchResult(P0)
    hurried = threading.Event()
    result.send_now = lambda result: hurried.set()
    results: list[RecordMetadata] = []
    waiting = threading.Thread(target=lambda: results.append(Delivery(result, 0, 1).result(10)))
    waiting.start()
    assert hurried.wait(10)
    result.complete(0, Outcome(1, base_offset=7))
    waiting.join(10)
    assert results == [RecordMetadata("t", 0, 7, 1)]


def test_the_first_outcome_counts() -> None:
    result = BatchResult(P0)
    result.complete(0, Outcome(1, base_offset=7))
    result.complete(0, Outcome(1, error=REFUSED))
    assert Delivery(result, 0, 1).exception() is None


def test_callbacks_get_the_delivery_and_may_ask_for_the_result() -> None:
    result = BatchResult(P0)
    deliveries = [Delivery(result, index, 0) for index in range(2)]
    offsets: list[int] = []
    deliveries[0].add_done_callback(lambda it: offsets.append(it.result().offset))
    deliveries[0].add_done_callback(lambda it: offsets.append(deliveries[1].result().offset))
    result.complete(0, Outcome(2, base_offset=5))
    # The result is already known, so this callback runs at once.
    deliveries[1].add_done_callback(lambda it: offsets.append(it.result().offset))
    assert offsets == [5, 6, 6]


@pytest.mark.parametrize("mistake", [lambda it: 1 / 0, lambda it: sys.exit(1)])
def test_a_callback_that_raises_is_logged_and_the_others_are_called(
    mistake: object, caplog: pytest.LogCaptureFixture
) -> None:
    result = BatchResult(P0)
    called: list[Delivery] = []
    first, second = Delivery(result, 0, 0), Delivery(result, 1, 0)
    first.add_done_callback(mistake)  # type: ignore[arg-type]
    second.add_done_callback(called.append)
    with caplog.at_level(logging.ERROR):
        result.complete(0, Outcome(2, base_offset=5))
    assert called == [second]
    assert result.callbacks_done
    assert "a delivery's callback failed" in caplog.text


def test_control_c_in_a_callback_that_runs_at_once_reaches_the_program() -> None:
    def interrupted(delivery: Delivery) -> None:
        raise KeyboardInterrupt

    result = BatchResult(P0)
    result.complete(0, Outcome(1, base_offset=5))
    with pytest.raises(KeyboardInterrupt):
        Delivery(result, 0, 0).add_done_callback(interrupted)


def test_all_deliveries_of_a_refused_batch_name_the_guilty_record() -> None:
    result = BatchResult(P0)
    result.complete(0, Outcome(3, error=REFUSED, record_errors={1: "it has no key"}))
    errors = [str(Delivery(result, index, 0).exception()) for index in range(3)]
    together = "INVALID_RECORD (87): t-0: rejected together with record 2 of the 3 in its batch: it has no key"
    assert errors == [together, "INVALID_RECORD (87): t-0: it has no key", together]


def test_a_batch_that_was_split_has_an_outcome_for_each_part() -> None:
    result = BatchResult(P0)
    result.split()
    deliveries = [Delivery(result, index, 0) for index in range(4)]
    result.complete(2, Outcome(2, error=REFUSED, record_errors={1: "bad"}))
    assert not deliveries[2].done()
    result.complete(0, Outcome(2, base_offset=10))
    assert [it.result().offset for it in deliveries[:2]] == [10, 11]
    assert str(deliveries[3].exception()) == "INVALID_RECORD (87): t-0: bad"


def test_many_records_have_ranges() -> None:
    first, second = BatchResult(P0), BatchResult(P1)
    deliveries = Deliveries([BatchSlice(first, 3, range(2)), BatchSlice(second, 0, range(2, 5))])
    done: list[Deliveries] = []
    deliveries.add_done_callback(done.append)
    first.split()
    first.complete(0, Outcome(4, base_offset=10))
    first.complete(4, Outcome(4, base_offset=20))
    assert not deliveries.done()
    assert done == []
    second.complete(0, Outcome(3))
    assert deliveries.done()
    assert done == [deliveries]
    assert deliveries.result() == [Range("t", 0, 13, 1), Range("t", 0, 20, 1), Range("t", 1, -1, 3)]


def test_an_error_of_many_names_the_value() -> None:
    first, second = BatchResult(P0), BatchResult(P1)
    deliveries = Deliveries([BatchSlice(first, 3, [0, 2, 4]), BatchSlice(second, 0, [1, 3])])
    first.complete(0, Outcome(8, base_offset=0))
    second.complete(0, Outcome(2, error=REFUSED, record_errors={1: "it has no key"}))
    with pytest.raises(KafkaError, match="value 3: t-1: it has no key"):
        deliveries.result()


def test_an_empty_send_many_is_done_at_once() -> None:
    deliveries = Deliveries([])
    done: list[Deliveries] = []
    deliveries.add_done_callback(done.append)
    assert (deliveries.done(), deliveries.result(), done) == (True, [], [deliveries])


def test_failures_of_send_many_name_the_lost_values_and_their_cause() -> None:
    delivered, refused, split = BatchResult(P0), BatchResult(P1), BatchResult(P0)
    slices = [BatchSlice(delivered, 0, [0, 2]), BatchSlice(refused, 1, [1, 3]), BatchSlice(split, 0, [4, 5])]
    deliveries = Deliveries(slices)
    delivered.complete(0, Outcome(2, base_offset=0))
    refused.complete(0, Outcome(3, error=REFUSED, record_errors={2: "too blue"}))
    split.split()
    split.complete(0, Outcome(1, base_offset=2))
    split.complete(1, Outcome(1, error=REFUSED))
    blamed, last = deliveries.failures()
    assert (list(blamed.rows), blamed.failed_row) == ([1, 3], 3)
    assert str(blamed.error) == "INVALID_RECORD (87): t-1: too blue"
    assert (list(last.rows), last.failed_row, last.error) == ([5], 5, REFUSED)


@pytest.mark.parametrize(("record_errors", "failed_row"), [({1: "too blue", 3: "no key"}, 1), ({}, 0)])
def test_two_slices_of_one_batch_name_the_first_failed_row(record_errors: dict[int, str], failed_row: int) -> None:
    result = BatchResult(P0)
    deliveries = Deliveries([BatchSlice(result, 0, [0, 1]), BatchSlice(result, 2, [2, 3])])
    result.complete(0, Outcome(4, error=REFUSED, record_errors=record_errors))
    (failure,) = deliveries.failures()
    assert (list(failure.rows), failure.failed_row) == ([0, 1, 2, 3], failed_row)
    assert ("too blue" in str(failure.error)) == bool(record_errors)


def test_the_guilty_record_may_be_in_another_part_of_the_batch() -> None:
    result = BatchResult(P0)
    deliveries = Deliveries([BatchSlice(result, 0, [0, 1]), BatchSlice(result, 2, [2, 3])])
    others = Deliveries([BatchSlice(result, 4, [0])])
    result.complete(0, Outcome(5, error=REFUSED, record_errors={3: "too blue"}))
    (failure,) = deliveries.failures()
    assert (list(failure.rows), failure.failed_row, failure.caused_elsewhere) == ([0, 1, 2, 3], 3, False)
    (collateral,) = others.failures()
    assert (list(collateral.rows), collateral.failed_row, collateral.caused_elsewhere) == ([0], 0, True)
    with pytest.raises(KafkaError, match="value 3: t-0: too blue"):
        deliveries.result()
