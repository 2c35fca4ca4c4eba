"""A wrong answer to lab 1: `poll` looks at its queue without the lock, so another thread can take the last message."""

import threading
from collections import deque


class Topic:
    def __init__(self):
        self.changed = threading.Condition()
        self.queues = {}

    def publish(self, message):
        with self.changed:
            for queue in self.queues.values():
                queue.append(message)
            self.changed.notify_all()

    def subscribe(self, name):
        with self.changed:
            self.queues[name] = deque()

    def poll(self, name):
        queue = self.queues[name]
        if len(queue) > 0:
            message = queue.popleft()
            return message  # noqa: RET504
        return None

    def wait(self, name, timeout):
        with self.changed:
            self.changed.wait_for(lambda: self.queues[name], timeout)
            return self.poll(name)

    def retained(self):
        with self.changed:
            return max(map(len, self.queues.values()), default=0)
