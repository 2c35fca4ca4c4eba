"""Batches: what goes together, when it may go, and what bounds it."""

import threading

import pytest

from hmb.client.accumulator import RECORD_COST, Accumulator
from hmb.client.metadata import TopicPartition
from hmb.records import Record

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
AGES = 3600.0


def append(accumulator: Accumulator, partition: TopicPartition, value: bytes) -> None:
    accumulator.append(partition, Record(value=value), len(value), timeout=AGES)


def test_records_gather_until_a_batch_is_full() -> None:
    accumulator = Accumulator(batch_size=10, linger=AGES, memory=100_000)
    for value in (b"aaaa", b"bbbb", b"cccc"):
        append(accumulator, P0, value)
    (batch,) = accumulator.wait_for_batches()  # the first is due, for it has no room for cccc; the second lingers
    assert [record.value for record in batch.records] == [b"aaaa", b"bbbb"]


def test_only_front_batches_go_so_that_order_stays() -> None:
    accumulator = Accumulator(batch_size=1, linger=0, memory=100_000)
    for partition, value in ((P0, b"1"), (P0, b"2"), (P1, b"3")):
        append(accumulator, partition, value)
    first, other = accumulator.wait_for_batches()
    assert [record.value for record in first.records + other.records] == [b"1", b"3"]
    assert accumulator.wait_for_batches() == [first, other]  # still, until they are done
    accumulator.done(first)
    second, other = accumulator.wait_for_batches()
    assert [record.value for record in second.records] == [b"2"]


def test_a_batch_that_was_taken_grows_no_more() -> None:
    accumulator = Accumulator(batch_size=100, linger=0, memory=100_000)
    append(accumulator, P0, b"1")
    (batch,) = accumulator.wait_for_batches()
    append(accumulator, P0, b"2")
    assert len(batch.records) == 1


def test_a_record_larger_than_a_batch_is_a_batch() -> None:
    accumulator = Accumulator(batch_size=10, linger=AGES, memory=5)
    append(accumulator, P0, b"x" * 50)
    assert [batch.size for batch in accumulator.wait_for_batches()] == [50]


def test_memory_is_bounded_and_waiting_for_it_ends() -> None:
    accumulator = Accumulator(batch_size=10, linger=AGES, memory=RECORD_COST)
    append(accumulator, P0, b"x" * 8)
    with pytest.raises(TimeoutError, match=f"records wait for the broker in {RECORD_COST + 8} bytes"):
        accumulator.append(P0, Record(value=b"y" * 8), 8, timeout=0.01)


def test_memory_that_comes_free_lets_a_waiting_thread_go_on() -> None:
    accumulator = Accumulator(batch_size=10, linger=AGES, memory=RECORD_COST)
    append(accumulator, P0, b"x" * 8)
    waiting = threading.Thread(target=append, args=(accumulator, P0, b"y" * 8))
    waiting.start()
    (batch,) = accumulator.wait_for_batches()  # due at once, because somebody waits
    accumulator.done(batch)
    waiting.join(timeout=10)
    assert not waiting.is_alive()


def test_closing_lets_all_go_and_takes_no_more() -> None:
    accumulator = Accumulator(batch_size=100, linger=AGES, memory=100_000)
    append(accumulator, P0, b"1")
    accumulator.close()
    with pytest.raises(ValueError, match="the producer is closed"):
        append(accumulator, P0, b"2")
    (batch,) = accumulator.wait_for_batches()
    accumulator.done(batch)
    assert accumulator.wait_for_batches() == []
