"""Tests of the accumulator: when it closes and returns its batches, and how it limits their memory."""

from __future__ import annotations

import threading

import pytest

from hmb.client.producing.accumulator import Accumulator
from hmb.client.producing.batch import PartitionQueue, ProducerBatch
from hmb.client.producing.delivery import BatchSlice, Delivery
from hmb.client.producing.encoding import halves
from hmb.client.producing.record_checks import ESTIMATED_OVERHEAD
from hmb.records import RECORD_BATCH_OVERHEAD, read_records
from hmb.records.batch import wrap_records
from hmb.records.compression import Codec

AGES = 3600.0
TINY = 1 + ESTIMATED_OVERHEAD  # the bytes that the accumulator reserves for a record of one byte


def accumulator(
    records: int = 100, linger: float = AGES, memory: int = 100_000, max_block: float = AGES
) -> Accumulator:
    """Return an accumulator. Each of its batches has room for the given number of tiny records."""
    size = RECORD_BATCH_OVERHEAD + ESTIMATED_OVERHEAD + (records - 1) * len(encoded(b"x")) + 1
    return Accumulator(size, linger, memory, max_block)


def encoded(value: bytes) -> bytearray:
    other = Accumulator(1000, AGES, 1000, AGES)
    append(other, value)
    return other._queues.batches()[0].records.data


def append(to: Accumulator, value: bytes, partition: int | None = 0, partitions: int = 2) -> Delivery:
    return to.append("t", partition, partitions, ESTIMATED_OVERHEAD + len(value), 1, None, value, ())


def append_values(to: Accumulator, values: list[bytes], partition: int | None = 0) -> list[BatchSlice]:
    parts: list[BatchSlice] = []
    to.append_values("t", partition, 2, 1, values, 0, parts)
    return parts


def take(of: Accumulator) -> list[ProducerBatch]:
    return of.wait_for_batches(of.without_leader)


def values(*batches: ProducerBatch) -> list[bytes | None]:
    found: list[bytes | None] = []
    for batch in batches:
        it = batch.records
        data = wrap_records(it.data, it.count, it.base_timestamp, it.max_timestamp, Codec.NONE)
        found += [record.value for record in read_records(data)]
    return found


def test_records_gather_until_a_batch_is_full() -> None:
    it = accumulator(records=2)
    for value in (b"a", b"b", b"c"):
        append(it, value)
    (batch,) = take(it)  # The first batch has no room for c, so it is due. The second batch waits for more records.
    assert values(batch) == [b"a", b"b"]


def test_only_the_first_batch_of_a_queue_is_sent() -> None:
    it = accumulator(records=1, linger=0)
    for partition, value in ((0, b"1"), (0, b"2"), (1, b"3")):
        append(it, value, partition)
    first, other = take(it)
    assert values(first, other) == [b"1", b"3"]
    assert take(it) == [first, other]  # Both batches remain in the queue until they are complete.
    it.done(first)
    assert values(*take(it)) == [b"2", b"3"]


def test_a_batch_that_was_taken_gets_no_further_records() -> None:
    it = accumulator(linger=0)
    append(it, b"1")
    (batch,) = take(it)
    append(it, b"2")
    assert values(batch) == [b"1"]


def test_a_record_larger_than_a_batch_is_a_batch() -> None:
    it = accumulator(records=1, memory=5)
    append(it, b"x" * 500)
    append_values(accumulator(records=1, memory=5), [b"x" * 500])
    it.seal()
    assert values(*take(it)) == [b"x" * 500]


def test_the_memory_is_the_size_of_the_records() -> None:
    it = accumulator(records=1, linger=0)
    for value in (b"1", b"22", b"333"):
        append(it, value)
    assert it.used == sum(len(encoded(value)) for value in (b"1", b"22", b"333"))
    (first,) = take(it)
    it.encoded(first, b"12345")
    assert it.used == 5 + sum(len(encoded(value)) for value in (b"22", b"333"))
    it.done(first)
    assert it.used == sum(len(encoded(value)) for value in (b"22", b"333"))


def test_memory_is_bounded_and_waiting_for_it_ends() -> None:
    it = accumulator(memory=TINY, max_block=0.01)
    append(it, b"x")
    with pytest.raises(TimeoutError, match=r"the buffer holds 8 of 21 bytes \(buffer_memory\)"):
        append(it, b"y")
    with pytest.raises(TimeoutError, match=r"the producer waited 0\.01 s for 21 free bytes"):
        append_values(it, [b"y"])


def test_freed_memory_lets_a_waiting_thread_continue() -> None:
    it = accumulator(memory=TINY)
    append(it, b"x")
    waiting = threading.Thread(target=append, args=(it, b"y"))
    waiting.start()
    (batch,) = take(it)  # The batch is due at once, because a thread waits.
    it.done(batch)
    waiting.join(timeout=10)
    assert not waiting.is_alive()


def test_small_records_do_not_overtake_a_large_record_permanently(monkeypatch: pytest.MonkeyPatch) -> None:
    it = accumulator(records=1, linger=0, memory=100)
    append(it, b"x" * 60)
    order: list[str] = []
    came = threading.Semaphore(0)
    wait = it._wait_for_memory

    def announced(size: int) -> None:
        came.release()
        wait(size)

    def send(value: bytes, name: str) -> None:
        append(it, value)
        order.append(name)

    monkeypatch.setattr(it, "_wait_for_memory", announced)
    threads = []
    # The second, small record would have room at once, but it must wait until the large record has its memory.
    for value, name in ((b"y" * 79, "large"), (b"z", "small")):
        threads.append(threading.Thread(target=send, args=(value, name)))
        threads[-1].start()
        assert came.acquire(timeout=10)
    (batch,) = take(it)
    it.done(batch)
    threads[0].join(timeout=10)
    (batch,) = take(it)
    it.done(batch)
    threads[1].join(timeout=10)
    assert order == ["large", "small"]


def test_values_fill_batch_after_batch() -> None:
    it = accumulator(records=3, linger=0)
    parts = append_values(it, [b"%d" % number for number in range(7)])
    assert [number for part in parts for number in part.rows] == list(range(7))
    found: list[bytes | None] = []
    for result in dict.fromkeys(part.result for part in parts):
        (batch,) = take(it)
        assert batch.result is result
        for part in parts:
            if part.result is result:
                rows = [b"%d" % number for number in part.rows]
                assert values(batch)[part.first : part.first + len(rows)] == rows
        found += values(batch)
        it.done(batch)
    assert found == [b"%d" % number for number in range(7)]


def test_values_are_appended_to_an_open_batch() -> None:
    it = accumulator()
    append(it, b"1")
    (part,) = append_values(it, [b"2", b"3"])
    it.seal()
    assert (part.first, values(*take(it))) == (1, [b"1", b"2", b"3"])


def test_records_without_a_partition_stick_to_one_until_its_batch_is_sealed() -> None:
    it = accumulator(records=10)
    for _ in range(20):
        for _ in range(10):
            append(it, b"x", None)
        batches = it._queues.batches()
        assert [batch.records.count for batch in batches] == [10] * len(batches)
        it.seal()
    assert {batch.partition.partition for batch in it._queues.batches()} == {0, 1}


def test_a_slow_partition_gets_less() -> None:
    it = accumulator(records=1, linger=0)
    for _ in range(100):
        append(it, b"x", None)
        for batch in take(it):
            if batch.partition.partition == 1:
                it.done(batch)
    assert [batch.partition.partition for batch in it._queues.batches()] == [0]


def test_after_close_all_batches_are_due_and_no_records_are_accepted() -> None:
    it = accumulator()
    append(it, b"1")
    it.close()
    with pytest.raises(RuntimeError, match="the producer is closed"):
        append(it, b"2")
    (batch,) = take(it)
    it.done(batch)
    assert take(it) == []


def test_an_abandoned_batch_fails_once() -> None:
    it = accumulator(records=1, linger=0)
    first, second = append(it, b"1"), append(it, b"2")
    (batch,) = take(it)
    it.close()
    it.abandon(TimeoutError("enough"))
    assert str(first.exception()) == str(second.exception()) == "enough"
    batch.deliver(5, -1)  # A response to the abandoned batch arrives.
    it.done(batch)
    assert str(first.exception()) == "enough"
    assert (it.used, take(it)) == (0, [])


def test_a_batch_that_was_abandoned_is_not_split() -> None:
    """An abandoned batch is not split into two halves.

    The halves would not be in the queue, and a thread that waits for their records would wait forever.
    """
    it = accumulator(linger=0)
    first, second = append(it, b"1"), append(it, b"2")
    (batch,) = take(it)
    records = batch.records
    it.encoded(batch, wrap_records(records.data, 2, 1, 1, Codec.NONE))
    parts = halves(batch)
    it.close()
    it.abandon(TimeoutError("enough"))
    it.split(batch, parts)
    assert first.done() and second.done() and it.used == 0


def test_control_c_while_a_batch_is_opened_spoils_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> object:
        monkeypatch.undo()
        raise KeyboardInterrupt

    it = accumulator()
    monkeypatch.setattr("hmb.client.producing.accumulator.BatchResult", interrupted)
    with pytest.raises(KeyboardInterrupt):
        append(it, b"1")
    append(it, b"2")
    it.close()
    assert not it.finished
    assert values(*take(it)) == [b"2"]


def test_a_queue_moves_to_another_sender() -> None:
    it = accumulator(linger=0)
    append(it, b"1")
    (batch,) = take(it)
    sender_queues = it.new_sender_queues()
    it.move(batch.queue, sender_queues)
    assert it.wait_for_batches(sender_queues) == [batch]
    it.done(batch)
    append(it, b"2")
    assert values(*it.wait_for_batches(sender_queues)) == [b"2"]
    assert isinstance(batch.queue, PartitionQueue)
    assert not it.without_leader.queues
