"""Tests for the requirements of lab 2.

In each test, `answer` is the student's module `answer.py`, and `rng` generates random test cases.
"""

MESSAGES = ["tea", "coffee", "coffee", "water", "tea"]


class Link:
    """A simulated link between a sender and a receiver. It loses some messages and some answers.

    `plan` has one letter for each call of `send`. "m" loses the message, "a" loses the answer, and "-" loses nothing.
    """

    def __init__(self, plan, receive):
        self.plan, self.receive, self.calls = list(plan), receive, []

    def send(self, number, message):
        """Send a message to the receiver, and return whether the receiver's answer arrives.

        The next letter of `plan` decides what happens: "m" loses the message, "a" loses the answer, and "-" loses
        nothing.
        """
        assert len(self.calls) < 500, f"more than 500 calls of send; the first ones are {self.calls[:6]}"
        self.calls.append((number, message))
        event = self.plan.pop(0) if self.plan else "-"
        if event != "m":
            self.receive(number, message)
        return event == "-"


class Crash(Exception):
    """A simulated crash of the consumer. The check starts the consumer again."""


class Store:
    """A store for the results and the position of a consumer.

    The store counts the calls of its methods: the first call has the number 1. If the number of a call is in `crashes`,
    this call raises Crash and changes nothing.
    """

    def __init__(self, crashes=()):
        self.results, self.position, self.operations, self.crashes = [], 0, 0, set(crashes)

    def _step(self):
        self.operations += 1
        if self.operations in self.crashes:
            raise Crash

    def process(self, record):
        self._step()
        self.results.append(record)

    def commit(self, position):
        self._step()
        self.position = position

    def process_and_commit(self, record, position):
        self._step()
        self.results.append(record)
        self.position = position


def run(answer, records, order, crashes):
    """Run a consumer, and restart it after each crash. Return a `Store` with the consumer's results."""
    store = Store(crashes)
    for _ in range(len(crashes) + 1):
        try:
            answer.consume(list(records), store, order)
        except Crash:
            continue
        return store
    raise AssertionError(f'consume(..., "{order}") does not end after {len(crashes)} crashes')


def plans(rng):
    """Yield plans for a simulated link (`Link`): first simple plans, then random plans.

    A plan has one letter for each call of `send`: "m" loses the message, "a" loses the answer, and "-" loses nothing.
    """
    yield from ("", "m", "a", "-a", "-m", "aa", "am", "mama", "-aa-m")
    for _ in range(60):
        yield "".join(rng.choice("--ma") for _ in range(rng.randrange(20)))


def test_counting(answer, rng):
    """`count_mistakes` returns the number of lost messages, and the number of repetitions."""
    cases = [
        ([], [], (0, 0)),
        (["a", "b"], ["a"], (1, 0)),
        (["a"], ["a", "a", "a"], (0, 2)),
        (["a", "a"], ["a"], (1, 0)),
        (["a", "a", "b"], ["a", "b", "b"], (1, 1)),
    ]
    for _ in range(50):
        sent, processed = (rng.choices("abc", k=rng.randrange(8)) for _ in range(2))
        lost = sum(max(0, sent.count(each) - processed.count(each)) for each in "abc")
        cases.append((sent, processed, (lost, lost + len(processed) - len(sent))))
    for sent, processed, expected in cases:
        found = answer.count_mistakes(list(sent), list(processed))
        assert found == expected, f"count_mistakes({sent}, {processed}) returns {found!r} (right: {expected})"


def test_at_most_once(answer, rng):
    """`send_at_most_once` sends each message once, in order, with its number."""
    for plan in plans(rng):
        arrived = []
        link = Link(plan, lambda number, message, arrived=arrived: arrived.append(message))
        answer.send_at_most_once(list(MESSAGES), link.send)
        expected = list(enumerate(MESSAGES))
        case = f"a link with the plan {plan!r} (m: message lost, a: answer lost)"
        assert link.calls == expected, f"{case}: send is called with {link.calls} (right: {expected})"


def test_at_least_once(answer, rng):
    """`send_at_least_once` repeats a message until its answer arrives, and only then sends the next message."""
    for plan in plans(rng):
        arrived = []
        link = Link(plan, lambda number, message, arrived=arrived: arrived.append((number, message)))
        answer.send_at_least_once(list(MESSAGES), link.send)
        expected, number = [], 0
        for event in [*plan, *"-" * len(MESSAGES)]:
            if number < len(MESSAGES):
                expected.append((number, MESSAGES[number]))
                number += event == "-"
        case = f"a link with the plan {plan!r} (m: message lost, a: answer lost)"
        assert link.calls == expected, f"{case}: send is called with {link.calls} (right: {expected})"


def test_exactly_once(answer, rng):
    """A `Receiver` processes each message once, even if the message arrives several times."""
    for plan in plans(rng):
        processed = []
        receiver = answer.Receiver(processed.append)
        link = Link(plan, receiver.receive)
        for number, message in enumerate(MESSAGES):
            while not link.send(number, message):
                pass
        case = f"{MESSAGES} over a link with the plan {plan!r} (m: message lost, a: answer lost)"
        assert processed == MESSAGES, f"{case}: the receiver processes {processed}"


def test_memory(answer):
    """A `Receiver` uses no more memory after 10,000 messages than after 100."""
    receiver = answer.Receiver(lambda message: None)
    for number in range(10_000):
        receiver.receive(number, "tea")
    sizes = {name: len(value) for name, value in vars(receiver).items() if hasattr(value, "__len__")}
    large = {name: size for name, size in sizes.items() if size > 100}
    assert not large, f"after 10,000 messages the receiver still has {large}; one number is enough"


def check_order(answer, rng, order, allowed):
    """Crash a consumer at different moments, and check which mistakes the crashes cause.

    The student's function `consume` processes records and commits the position. Its argument `order` states when it
    commits: "before" it processes a record, "after" it has processed the record, or "together" (both in one step).
    `allowed` lists the mistakes that this order can cause: records can be "lost" or "repeated". Each listed mistake
    has to occur at least once, and no other mistake is allowed.
    """
    records = [f"record {number}" for number in range(4)]
    store = run(answer, records, order, [])
    assert store.results == records, f'consume(..., "{order}") without a crash processes {store.results}'
    assert store.position == 4, f'consume(..., "{order}") commits the position {store.position} (right: 4)'
    seen = set()
    for crashes in [[each] for each in range(1, 9)] + [rng.sample(range(1, 16), 3) for _ in range(60)]:
        found = run(answer, records, order, crashes).results
        lost, repeated = len(set(records) - set(found)), len(found) - len(set(found))
        case = f'consume(..., "{order}") with a crash before operation {" and ".join(map(str, sorted(crashes)))}'
        assert lost == 0 or "lost" in allowed, f"{case} loses {lost} records: {found}"
        assert repeated == 0 or "repeated" in allowed, f"{case} repeats {repeated} records: {found}"
        count = max(lost, repeated)
        assert count <= len(crashes), f"{case} concerns {count} records; commit after each single record"
        seen |= {name for name, count in (("lost", lost), ("repeated", repeated)) if count}
    missing = " or ".join(set(allowed) - seen)
    assert not missing, f'consume(..., "{order}") never has records that are {missing}'


def test_commit_before(answer, rng):
    """If `consume` commits before it processes a record, a crash may lose records, but never repeats a record."""
    check_order(answer, rng, "before", ["lost"])


def test_commit_after(answer, rng):
    """If `consume` commits after it processes a record, a crash may repeat records, but never loses a record."""
    check_order(answer, rng, "after", ["repeated"])


def test_commit_together(answer, rng):
    """If `consume` processes and commits in one step, a crash neither loses nor repeats records."""
    check_order(answer, rng, "together", [])
