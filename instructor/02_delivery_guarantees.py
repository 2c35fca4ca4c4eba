"""One correct answer to the second exercise of lab 2: several messages in flight."""


class Receiver:
    def __init__(self, process, window):
        self.process, self.window = process, window
        self.next_number = 0
        self.early = {}  # the messages that wait for an earlier one, by number

    def receive(self, number, message):
        if self.next_number <= number < self.next_number + self.window:
            self.early[number] = message
        while self.next_number in self.early:
            self.process(self.early.pop(self.next_number))
            self.next_number += 1
        return self.next_number


def send_window(messages, window, send):
    begin = 0  # all messages below this number are acknowledged
    while begin < len(messages):
        batch = list(enumerate(messages))[begin : begin + window]
        acknowledged = send(batch)
        if acknowledged is not None:
            begin = max(begin, acknowledged)
