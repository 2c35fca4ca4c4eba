"""The beginning of your answer to lab 2: senders, a receiver and a consumer.

Complete `answer.py`, and check it with `hmb lab check 2`.
"""


def count_mistakes(sent, processed):
    """Return a pair: the number of lost messages, and the number of repetitions.

    A message that was sent once and processed three times counts as two repetitions.
    """
    return 0, 0


def send_at_most_once(messages, send):
    """Send messages over a link that loses some messages and some answers. No message may arrive twice."""


def send_at_least_once(messages, send):
    """Send messages over a link that loses some messages and some answers. Each message has to arrive."""


class Receiver:
    """A receiver of numbered messages. It processes each message exactly once."""

    def __init__(self, process):
        self.process = process

    def receive(self, number, message):
        """Process a message, unless it has already been processed."""
        self.process(message)


def consume(records, store, order):
    """Process the records, beginning at index `store.position`. Commit a new position for each record.

    With `order="before"`, commit before you process the record. With `order="after"`, process before you commit.
    With `order="together"`, do both in one step.
    """
    for record in records:
        store.process(record)
