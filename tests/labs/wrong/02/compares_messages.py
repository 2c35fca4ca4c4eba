"""A wrong answer to lab 2: the receiver ignores a message that equals the previous one."""

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
        while not send(number, message):
            pass


class Receiver:
    def __init__(self, process):
        self.process = process
        self.last = None

    def receive(self, number, message):
        if message == self.last:
            return  # The receiver has processed this message before. The sender repeats it because the answer was lost.
        self.process(message)
        self.last = message


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
