"""Tests for the second exercise of lab 7.

In each test, `answer` is the student's module `second.py`, and `rng` generates random test cases.
"""

import threading
import time

LIMIT = 5.0  # seconds: the check fails if a thread has not ended after this time


class Runner(threading.Thread):
    """A thread that calls a function, and stores the function's result and its processor time."""

    def __init__(self, function, *arguments):
        super().__init__(daemon=True)
        self.function, self.arguments, self.result, self.processor_time = function, arguments, None, 0.0
        self.start()

    def run(self):
        self.result = self.function(*self.arguments)
        self.processor_time = time.thread_time()

    def ended(self, seconds=LIMIT):
        self.join(seconds)
        return not self.is_alive()


def filled(answer, *names, limit=10):
    """Create a `Requests` object, and add one request for each name in `names`. A name stands for a connection.

    Return the object, and a text that describes the requests. The text is used in the messages of failed checks.
    """
    requests, counts = answer.Requests(limit), {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        requests.put(name, f"{name}{counts[name]}")
    return requests, f"the requests of {', '.join(names)}"


def takes(requests, case):
    """Call `take`, and return its result. The check fails if `take` waits."""
    taking = Runner(requests.take)
    assert taking.ended(), f"{case}: take waits, although a request is ready"
    return taking.result


def test_order(answer):
    """`take` returns the requests of a connection in the order of their arrival.

    It returns each request together with its connection.
    """
    requests, case = filled(answer, "A", "A", "A")
    found = []
    for _ in range(3):
        found.append(takes(requests, f"{case}, and done('A') after each"))
        requests.done("A")
    expected = [("A", "A1"), ("A", "A2"), ("A", "A3")]
    assert found == expected, f"{case}: take returns {found} (right: {expected})"


def test_one_at_a_time(answer):
    """While a request of a connection is in progress, `take` returns only requests of other connections."""
    requests, case = filled(answer, "A", "A", "B")
    found = [takes(requests, case)[1] for _ in range(2)]
    assert found == ["A1", "B1"], f"{case}: A1 is in progress, so take returns {found} (right: ['A1', 'B1'])"
    third = Runner(requests.take)
    assert not third.ended(0.2), f"{case}: A1 and B1 are in progress, and take returns {third.result}"
    requests.done("A")
    assert third.ended(), f"{case}: a thread waits in take, and done('A') does not wake it"
    assert third.result == ("A", "A2"), f"{case}: after done('A'), take returns {third.result}"


def test_fairness(answer):
    """`take` prefers the connection that has been ready for the longest time, so no connection waits forever."""
    requests, case = filled(answer, *"AAAABBC")
    found = []
    for _ in range(7):
        connection, request = takes(requests, case)
        found.append(request)
        requests.done(connection)
    expected = ["A1", "B1", "C1", "A2", "B2", "A3", "A4"]
    assert found == expected, f"{case}, and done after each take: take returns {found} (right: {expected})"


def test_backpressure(answer):
    """`put(connection, request)` blocks while the number of the connection's waiting requests is `limit`.

    A request is waiting until `take` returns it. Requests of other connections do not count.
    """
    requests, case = filled(answer, "A", "A", limit=2)
    other = Runner(requests.put, "B", "B1")
    assert other.ended(), f"Requests(2), {case}: put of B1 waits, although B has no request"
    late = Runner(requests.put, "A", "A3")
    assert not late.ended(0.2), f"Requests(2), {case}: put of A3 does not wait"
    takes(requests, case)
    assert late.ended(), f"Requests(2), {case}: put of A3 still waits after take; A1 is in progress, and not waiting"


def test_sleep(answer):
    """A thread that waits in `put` or `take` uses no processor time."""
    requests, _ = filled(answer, "A", limit=1)
    takes(requests, "the request of A")
    taking = Runner(requests.take)
    requests.put("A", "A2")
    putting = Runner(requests.put, "A", "A3")
    time.sleep(0.5)
    requests.done("A")
    for thread, name in ((taking, "take"), (putting, "put")):
        assert thread.ended(), f"{name} still waits after done('A')"
        used = thread.processor_time
        assert used < 0.02, f"{name} waits for 0.5 s, and takes {used:.2f} s of the processor; use wait and notify_all"


def test_many_threads(answer, rng):
    """With many threads, `take` returns each request once.

    Two requests of the same connection are never in progress at the same time.
    """
    requests, active, handled, faults = answer.Requests(3), set(), {name: [] for name in "ABCDE"}, []
    pauses = [rng.random() / 2000 for _ in range(100)]

    def handle():
        while True:
            connection, number = requests.take()
            if number is None:
                return
            if connection in active:
                faults.append(f"{connection}{number}")
            active.add(connection)
            time.sleep(pauses[number])
            handled[connection].append(number)
            active.discard(connection)
            requests.done(connection)

    def send(name):
        for number in range(100):
            requests.put(name, number)

    handlers, senders = [Runner(handle) for _ in range(4)], [Runner(send, name) for name in "ABCDE"]
    are_sent = all(thread.ended(8) for thread in senders)
    assert are_sent, "five connections with 100 requests each, and four handlers: put is stuck"
    end = time.monotonic() + LIMIT
    while sum(map(len, handled.values())) < 500 and time.monotonic() < end:
        time.sleep(0.01)
    for number in range(len(handlers)):
        requests.put(f"the end of handler {number}", None)
    assert not faults, f"two requests of a connection are in progress together: {faults[:3]}"
    for name, numbers in handled.items():
        assert numbers == list(range(100)), f"the requests of {name} are handled in the order {numbers[:6]}..."
