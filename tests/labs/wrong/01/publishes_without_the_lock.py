"""A wrong answer to lab 1: `publish` goes through the queues without the lock while `subscribe` adds a queue."""

import threading
from collections import deque


class Topic:
    def __init__(self):
        self.changed = threading.Condition()
        self.queues = {}

    def publish(self, message):
        for queue in self.queues.values():
            queue.append(message)
        with self.changed:
            self.changed.notify_all()

    def subscribe(self, name):
        with self.changed:
            self.queues[name] = deque()

    def poll(self, name):
        with self.changed:
            return self.queues[name].popleft() if self.queues[name] else None

    def wait(self, name, timeout):
        with self.changed:
            self.changed.wait_for(lambda: self.queues[name], timeout)
            return self.poll(name)

    def retained(self):
        with self.changed:
            return max(map(len, self.queues.values()), default=0)
