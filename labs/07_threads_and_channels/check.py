"""Tests for the requirements of lab 7.

In each test, `answer` is the student's module `answer.py`, and `rng` generates random test cases.
"""

import threading
import time

import pytest

LIMIT = 5.0  # seconds: the check fails if a thread has not ended after this time


class Runner(threading.Thread):
    """A thread that calls a function, and stores the value that the function returns.

    The attribute `result` contains this value. If the function raises an exception, the attribute `error`
    contains the exception. At the end, `processor_time` contains the processor time of the thread in seconds.
    """

    def __init__(self, function, *arguments):
        super().__init__(daemon=True)
        self.function, self.arguments, self.result, self.error = function, arguments, None, None
        self.processor_time = 0.0  # seconds, known when the thread has ended
        self.start()

    def run(self):
        try:
            self.result = self.function(*self.arguments)
        except Exception as error:  # noqa: BLE001  # The student's code may raise any exception.
            self.error = error
        self.processor_time = time.thread_time()

    def ended(self, seconds=LIMIT):
        self.join(seconds)
        return not self.is_alive()


def test_order(answer, rng):
    """`get` returns the items in the order in which `put` received them."""
    channel = answer.Channel(100)
    items = [rng.randrange(1000) for _ in range(50)]
    for item in items:
        channel.put(item)
    found = [channel.get() for _ in items]
    assert found == items, f"put {items[:5]}..., and get returns {found[:5]}..."


def test_a_full_channel(answer):
    """`put` waits while the channel is full, and appends its item as soon as another item is taken."""
    for capacity in (1, 3):
        channel = answer.Channel(capacity)
        for item in range(capacity):
            channel.put(item)
        waiting = Runner(channel.put, "late")
        assert not waiting.ended(0.2), f"Channel({capacity}) has {capacity} items, and put does not wait"
        channel.get()
        assert waiting.ended(), f"Channel({capacity}): put still waits after get has made room"
        assert waiting.error is None, f"Channel({capacity}): put raises {waiting.error!r} after it has waited"
        found = [channel.get() for _ in range(capacity)]
        assert found[-1] == "late", f"Channel({capacity}): the item of the waiting put is missing; get returns {found}"


def test_an_empty_channel(answer):
    """`get` waits while the channel is empty, and returns as soon as an item is put into the channel."""
    channel = answer.Channel(3)
    waiting = Runner(channel.get)
    assert not waiting.ended(0.2), f"the channel is empty, and get does not wait: {waiting.result!r} {waiting.error!r}"
    channel.put("tea")
    assert waiting.ended(), "get still waits after put('tea')"
    assert waiting.result == "tea", f"put('tea'): the waiting get returns {waiting.result!r}, {waiting.error!r}"


def test_waiting_takes_no_processor(answer):
    """A waiting thread uses no processor time: it sleeps until it is notified."""
    channel = answer.Channel(1)
    waiting = Runner(channel.get)
    time.sleep(0.5)
    channel.put("end")
    waiting.ended()
    used = waiting.processor_time  # A sleeping thread uses under 0.001 s of processor time, even on a busy computer.
    assert used < 0.02, f"get waits for 0.5 s, and takes {used:.2f} s of the processor; use wait and notify_all"


def test_time_limits(answer):
    """If `put` or `get` has waited for `timeout` seconds, it raises TimeoutError and changes nothing."""
    channel = answer.Channel(1)
    for name, call in (("get", lambda: channel.get(timeout=0.2)), ("put", lambda: channel.put("late", timeout=0.2))):
        if name == "put":
            channel.put("first")
        begin = time.monotonic()
        with pytest.raises(TimeoutError):
            found = call()
            raise AssertionError(f"{name}(timeout=0.2) returns {found!r} instead of TimeoutError")
        seconds = time.monotonic() - begin
        assert 0.15 < seconds < 3, f"{name}(timeout=0.2) raises TimeoutError after {seconds:.2f} s"
    assert channel.get() == "first", "put with a timeout changed the item in the channel"
    waiting = Runner(channel.get, 0.2)
    assert waiting.ended() and waiting.result is None, f"a put that timed out left the item {waiting.result!r}"


def test_one_item_for_several_threads(answer):
    """If several threads wait in `get` and one item is put into the channel, exactly one of the threads returns."""
    channel = answer.Channel(3)
    waiting = [Runner(channel.get) for _ in range(3)]
    time.sleep(0.1)
    for number in range(3):
        channel.put(number)
        end = time.monotonic() + LIMIT
        while sum(thread.ended(0) for thread in waiting) <= number and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.1)
        ended = [thread for thread in waiting if thread.ended(0)]
        count = f"three threads wait in get, and {number + 1} items come: {len(ended)} threads end"
        assert len(ended) == number + 1, f"{count}, with {[each.error or each.result for each in ended]}"
    assert sorted(each.result for each in waiting) == [0, 1, 2], f"they return {[each.result for each in waiting]}"


def test_a_time_limit_is_a_deadline(answer):
    """`get` raises TimeoutError after `timeout` seconds if other threads take all items that arrive."""
    for _ in range(10):
        channel = answer.Channel(1)
        waiting, end = Runner(channel.get, 0.4), time.monotonic() + 1.5
        try:
            while waiting.is_alive() and time.monotonic() < end:
                time.sleep(0.02)
                channel.put("taken again")
                channel.get(timeout=0.05)
        except TimeoutError:  # The waiting thread took the item, so this attempt proves nothing: try again.
            continue
        assert not waiting.is_alive(), "get(timeout=0.4) still waits after 1.5 s; another thread puts and gets"
        return


def test_closing(answer):
    """`close` wakes all threads that wait in `put` or `get`, and these calls raise `Closed`.

    Later calls of `get` still return the items that are left in the channel.
    """
    channel = answer.Channel(1)
    getting = [Runner(channel.get) for _ in range(3)]
    time.sleep(0.1)
    channel.close()
    for thread in getting:
        assert thread.ended(), "three threads wait in get: close does not wake all of them"
        assert isinstance(thread.error, answer.Closed), f"get ends with {thread.error!r} instead of Closed after close"
    channel = answer.Channel(1)
    channel.put("kept")
    putting = Runner(channel.put, "too late")
    time.sleep(0.1)
    channel.close()
    assert putting.ended(), "a thread waits in put: close does not wake it"
    assert isinstance(putting.error, answer.Closed), f"put ends with {putting.error!r} instead of Closed after close"
    taking = Runner(channel.get)
    assert taking.ended() and taking.result == "kept", f"get after close returns {taking.result!r} (right: 'kept')"
    taking = Runner(channel.get)
    assert taking.ended(), "get of a closed and empty channel waits"
    assert isinstance(taking.error, answer.Closed), f"a closed and empty channel: get ends with {taking.result!r}"


def test_nothing_is_lost(answer):
    """When many threads use a channel, no item is lost, and no item is taken twice."""
    channel = answer.Channel(2)
    taken = []

    def take():
        while True:
            try:
                taken.append(channel.get())
            except answer.Closed:
                return

    def give(thread):
        for number in range(300):
            channel.put((thread, number))

    takers, givers = [Runner(take) for _ in range(4)], [Runner(give, thread) for thread in range(4)]
    for thread in givers:
        assert thread.ended(15), "four threads put 300 items each into Channel(2), and four take them: a put is stuck"
        assert thread.error is None, f"put raises {thread.error!r}"
    channel.close()
    for thread in takers:
        assert thread.ended(), "after close, a thread is stuck in get"
        assert thread.error is None, f"get raises {thread.error!r}"
    assert len(taken) == 1200, f"1,200 items were put, and {len(taken)} were taken"
    assert len(set(taken)) == 1200, f"{1200 - len(set(taken))} of 1,200 items were taken twice"


def test_a_stage(answer, rng):
    """`run_stage` returns the responses in the order of the requests. Its handlers work at the same time."""
    pauses = [rng.random() / 100 for _ in range(20)]
    together = threading.Barrier(4)

    def handle(number):
        together.wait(3)  # Wait until four handlers are at this line, or raise BrokenBarrierError after 3 seconds.
        time.sleep(pauses[number])
        return f"response {number}"

    try:
        found = answer.run_stage(list(range(20)), handle, 4, 2)
        are_alone = any(isinstance(each, threading.BrokenBarrierError) for each in found)
    except threading.BrokenBarrierError:
        are_alone = True
    assert not are_alone, "run_stage with 20 requests and 4 handlers: the handlers do not work at the same time"
    wrong = [number for number in range(20) if found[number] != f"response {number}"]
    assert not wrong, f"the response to request {wrong[0]} is {found[wrong[0]]!r}"


def test_an_error_in_a_handler(answer):
    """If `handle` raises an exception for a request, this exception is the response to the request.

    The thread of the handler then continues with the next request.
    """

    def handle(number):
        if number % 2:
            raise ValueError(f"the number {number} is odd")
        return number

    running = Runner(answer.run_stage, list(range(10)), handle, 2, 2)
    assert running.ended(), "half of the requests raise ValueError: run_stage does not end"
    assert running.error is None, f"run_stage raises {running.error!r}; the exception is the response of its request"
    kinds = [type(each).__name__ for each in running.result]
    assert kinds == ["int", "ValueError"] * 5, f"requests 0 to 9, every second one fails: the responses are {kinds}"
