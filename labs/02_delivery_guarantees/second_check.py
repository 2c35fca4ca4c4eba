"""Tests for the second exercise of lab 2.

In each test, `answer` is the student's module `second.py`, and `rng` generates random test cases.
"""

MESSAGES = [f"message {number}" for number in range(8)]


def receive(receiver, numbers):
    """Give the receiver one message for each number in `numbers`, and return all acknowledgements."""
    return [receiver.receive(number, f"message {number}") for number in numbers]


def test_out_of_order(answer):
    """A `Receiver` processes messages in the order of their numbers.

    `receive` returns the number of the next missing message.
    """
    for numbers, expected in (([0, 1, 2], [1, 2, 3]), ([1, 0], [0, 2]), ([2, 1, 0, 3], [0, 0, 3, 4])):
        processed = []
        found = receive(answer.Receiver(processed.append, 4), numbers)
        case = f"the messages {numbers} arrive"
        right = MESSAGES[: expected[-1]]
        assert processed == right, f"{case}: the receiver processes {processed} (right: {right})"
        assert found == expected, f"{case}: the acknowledgements are {found} (right: {expected})"


def test_copies(answer):
    """A `Receiver` processes a message once, even if the message arrives several times.

    Copies may arrive before or after the receiver has processed the message.
    """
    for numbers, expected in (([0, 0, 1, 0], 2), ([1, 1, 0, 1], 2), ([2, 1, 2, 0, 2, 1], 3)):
        processed = []
        found = receive(answer.Receiver(processed.append, 4), numbers)
        case = f"the messages {numbers} arrive"
        assert processed == MESSAGES[:expected], f"{case}: the receiver processes {processed}"
        assert found[-1] == expected, f"{case}: the last acknowledgement is {found[-1]!r} (right: {expected})"


def test_window(answer):
    """A `Receiver` ignores a message whose number is too large.

    Let n be the number of the next missing message. A number is too large if it is n + `window` or larger.
    """
    for window in (1, 2, 4):
        processed = []
        found = receive(answer.Receiver(processed.append, window), [*range(7, 0, -1), 0])
        case = f"Receiver(process, {window}): the messages 7, 6, 5, ... 0 arrive"
        assert processed == MESSAGES[:window], f"{case}: it processes {processed} (right: {MESSAGES[:window]})"
        assert found[-1] == window, f"{case}: the last acknowledgement is {found[-1]!r} (right: {window})"


def test_memory(answer):
    """A `Receiver` stores a message only while an earlier message is missing."""
    receiver = answer.Receiver(lambda message: None, 4)
    for number in range(0, 10_000, 2):
        receive(receiver, [number + 1, number])
    sizes = {name: len(value) for name, value in vars(receiver).items() if hasattr(value, "__len__")}
    large = {name: size for name, size in sizes.items() if size > 4}
    assert not large, f"after 10,000 messages, the receiver still has {large}; no message waits"


class Link:
    """A simulated link to a receiver.

    The link loses some messages and some acknowledgements, and changes the order of the messages in a batch.
    """

    def __init__(self, rng, loss):
        self.rng, self.loss, self.calls, self.next, self.early = rng, loss, [], 0, set()

    def send(self, batch):
        """Deliver a batch. Return the acknowledgement of the receiver, or None if the acknowledgement is lost."""
        batch = [tuple(each) for each in batch]
        numbers = [number for number, _ in batch]
        self.calls.append((numbers, self.next))
        assert len(self.calls) < 2000, f"more than 2,000 calls of send; the last ones send {self.calls[-3:]}"
        assert all(message == MESSAGES[number] for number, message in batch), f"send([...]) gets the batch {batch}"
        self.early |= {number for number in numbers if self.rng.random() >= self.loss}
        while self.next in self.early:
            self.next += 1
        return None if self.rng.random() < self.loss else self.next


def test_sending(answer, rng):
    """`send_window` calls `send` with the oldest messages that are not acknowledged yet.

    Each call gets a batch whose length is the number `window`. If fewer messages are left, the batch contains all
    of them.
    """
    for window in (1, 3, 5):
        link, known = Link(rng, 0), 0
        answer.send_window(list(MESSAGES), window, link.send)
        expected = []
        while known < len(MESSAGES):
            expected.append(list(range(known, min(known + window, len(MESSAGES)))))
            known += window
        found = [numbers for numbers, _ in link.calls]
        case = f"8 messages, window {window}, no losses"
        assert found == expected, f"{case}: send gets the numbers {found} (right: {expected})"
    for window in (1, 2, 3, 5):
        replies, found = [None, 0, 1, None, 8], []

        def send(batch, found=found, replies=replies):
            found.append([number for number, _ in batch])
            assert len(found) < 30, f"send returns {replies}, and send_window does not end: it sends {found[:7]}..."
            return replies[len(found) - 1] if len(found) <= len(replies) else 8

        answer.send_window(list(MESSAGES), window, send)
        expected = [list(range(begin, begin + window)) for begin in (0, 0, 0, 1, 1)]
        case = f"8 messages, window {window}, and send returns {replies} one after the other"
        assert found == expected, f"{case}: send gets the numbers {found} (right: {expected})"


def test_losses(answer, rng):
    """`send_window` ends when all messages are acknowledged, even if the link loses messages and acknowledgements."""
    for _ in range(60):
        link = Link(rng, rng.choice([0.1, 0.3, 0.6]))
        answer.send_window(list(MESSAGES), rng.randrange(1, 6), link.send)
        assert link.next == 8, f"send_window ends, but the receiver still needs message {link.next}: {link.calls[-3:]}"
