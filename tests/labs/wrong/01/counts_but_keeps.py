"""A wrong answer to lab 1: `retained` returns the right number, but no message is ever removed from memory."""

import threading


class Topic:
    def __init__(self):
        self.changed = threading.Condition()
        self.messages = []
        self.first = 0  # the number of the first message in `messages`
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
        # The method should remove the messages that all subscribers have read. Instead, the list keeps these messages,
        # and `retained` does not count them.
        pass

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
            end = len(self.messages)
            return end - min(self.cursors.values(), default=end)
