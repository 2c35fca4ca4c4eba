"""A wrong answer to lab 7: an exception raised by `handle` ends the handler thread."""

import threading
import time
from collections import deque


class Closed(Exception):
    pass


class Channel:
    def __init__(self, capacity):
        self.capacity = capacity
        self.items = deque()
        self.is_closed = False
        self.changed = threading.Condition()

    def put(self, item, timeout=None):
        with self.changed:
            self._wait(lambda: len(self.items) < self.capacity, timeout)
            if self.is_closed:
                raise Closed
            self.items.append(item)
            self.changed.notify_all()

    def get(self, timeout=None):
        with self.changed:
            self._wait(lambda: self.items, timeout)
            if not self.items:
                raise Closed
            item = self.items.popleft()
            self.changed.notify_all()
            return item

    def close(self):
        with self.changed:
            self.is_closed = True
            self.changed.notify_all()

    def _wait(self, condition, timeout):
        """Wait until `condition()` is true or the channel is closed. Raise TimeoutError after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not condition() and not self.is_closed:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError
            self.changed.wait(left)


def run_stage(requests, handle, handlers, capacity):
    channel = Channel(capacity)
    responses = [None] * len(requests)

    def work():
        while True:
            try:
                number, request = channel.get()
            except Closed:
                return
            responses[number] = handle(request)

    threads = [threading.Thread(target=work) for _ in range(handlers)]
    for thread in threads:
        thread.start()
    for numbered in enumerate(requests):
        channel.put(numbered)
    channel.close()
    for thread in threads:
        thread.join()
    return responses
