"""Tests of a producer's memory: a thread waits until memory is free, and the oldest waiting thread gets it first."""

from __future__ import annotations

import threading

import pytest

from hmb.client.producing.memory import BufferMemory
from tests.waiting import until

LONG = 30.0  # seconds


class Buffer:
    """A BufferMemory with the lock that guards it. The method `take` blocks until enough memory is free."""

    def __init__(self, size: int, max_block: float = LONG) -> None:
        self.lock = threading.Lock()
        self.memory = BufferMemory(self.lock, size, max_block)
        self.taken: list[str] = []
        self.is_closed = False

    def take(self, name: str, size: int) -> None:
        with self.lock:
            self.memory.wait(size, lambda: self.is_closed)
            self.memory.free -= size
            self.taken.append(name)

    def start(self, name: str, size: int) -> threading.Thread:
        """Take memory in a new thread. Return when the new thread waits for memory."""
        waiting = len(self.memory.waiting)
        thread = threading.Thread(target=self.take, args=(name, size))
        thread.start()
        until(lambda: len(self.memory.waiting) > waiting, "the thread waits for memory")
        return thread

    def release(self, size: int) -> None:
        with self.lock:
            self.memory.release(size)


def test_free_memory_is_taken_without_a_wait() -> None:
    buffer = Buffer(100)
    buffer.take("a", 60)
    assert (buffer.memory.free, buffer.memory.used) == (40, 60)


def test_a_thread_waits_until_enough_memory_is_released() -> None:
    buffer = Buffer(100)
    buffer.take("a", 100)
    thread = buffer.start("b", 50)
    buffer.release(50)
    thread.join(LONG)
    assert (buffer.taken, buffer.memory.free) == (["a", "b"], 0)


def test_a_small_record_does_not_overtake_a_large_one() -> None:
    buffer = Buffer(100)
    buffer.take("a", 100)
    threads = [buffer.start("large", 80), buffer.start("small", 10)]
    buffer.release(20)  # This is enough for the small record only, but the large one has waited longer.
    assert buffer.taken == ["a"]
    buffer.release(80)
    for thread in threads:
        thread.join(LONG)
    assert buffer.taken == ["a", "large", "small"]


def test_an_empty_buffer_accepts_a_record_of_any_size() -> None:
    buffer = Buffer(100)
    buffer.take("a", 500)
    assert buffer.memory.free == -400


def test_a_thread_that_gets_no_memory_in_time_raises_an_error() -> None:
    buffer = Buffer(100, max_block=0.01)
    buffer.take("a", 100)
    with pytest.raises(TimeoutError, match=r"the buffer holds 100 of 100 bytes .*waited 0\.01 s for 7 free bytes"):
        buffer.take("b", 7)
    assert not buffer.memory.waiting


def test_a_closed_producer_ends_the_wait() -> None:
    buffer = Buffer(100)
    buffer.take("a", 100)
    thread = buffer.start("b", 1)
    buffer.is_closed = True
    buffer.release(0)
    thread.join(LONG)
    assert not thread.is_alive() and not buffer.memory.waiting
