"""One correct answer to lab 1: a topic with several subscribers."""

import threading


class Topic:
    def __init__(self):
        self.changed = threading.Condition()
        self.messages = []
        self.first = 0  # the number of the first message in `messages`; the first message of the topic has the number 0
        self.cursors = {}

    def publish(self, message):
        with self.changed:
            self.messages.append(message)
            self.changed.notify_all()
            self._forget()

    def subscribe(self, name):
        with self.changed:
            self.cursors[name] = self.first + len(self.messages)

    def _next(self, name):
        """Return a list with the subscriber's next message, or an empty list. The caller must hold the lock."""
        number = self.cursors[name] - self.first
        found = self.messages[number : number + 1]
        self.cursors[name] += len(found)
        self._forget()
        return found

    def _forget(self):
        oldest = min(self.cursors.values(), default=self.first + len(self.messages))
        del self.messages[: oldest - self.first]
        self.first = oldest

    def poll(self, name):
        with self.changed:
            found = self._next(name)
            return found[0] if found else None

    def wait(self, name, timeout):
        with self.changed:
            self.changed.wait_for(lambda: self.cursors[name] < self.first + len(self.messages), timeout)
            found = self._next(name)
            return found[0] if found else None

    def retained(self):
        with self.changed:
            return len(self.messages)
