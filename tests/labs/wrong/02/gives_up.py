"""A wrong answer to lab 2: `send_at_least_once` repeats a message only once."""

from collections import Counter


def count_mistakes(sent, processed):
    lost = Counter(sent) - Counter(processed)
    too_often = Counter(processed) - Counter(sent)
    return lost.total(), too_often.total()


def send_at_most_once(messages, send):
    for number, message in enumerate(messages):
        send(number, message)


def send_at_least_once(messages, send):
    for number, message in enumerate(messages):
        send(number, message) or send(number, message)


class Receiver:
    def __init__(self, process):
        self.process = process
        self.next_number = 0

    def receive(self, number, message):
        if number < self.next_number:
            return  # The receiver has processed this message before. The sender repeats it because the answer was lost.
        self.process(message)
        self.next_number = number + 1


def consume(records, store, order):
    for position in range(store.position, len(records)):
        if order == "before":
            store.commit(position + 1)
            store.process(records[position])
        elif order == "after":
            store.process(records[position])
            store.commit(position + 1)
        else:
            store.process_and_commit(records[position], position + 1)
