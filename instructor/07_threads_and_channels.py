"""One correct answer to the second exercise of lab 7: a channel that knows connections."""

import threading
from collections import deque


class Requests:
    def __init__(self, limit):
        self.limit = limit
        self.waiting = {}  # for each connection: its waiting requests
        self.ready = deque()  # the connections with a waiting request and none in progress, the longest ready first
        self.busy = set()  # the connections with a request in progress
        self.changed = threading.Condition()

    def put(self, connection, request):
        with self.changed:
            waiting = self.waiting.setdefault(connection, deque())
            self.changed.wait_for(lambda: len(waiting) < self.limit)
            waiting.append(request)
            if len(waiting) == 1 and connection not in self.busy:
                self.ready.append(connection)
            self.changed.notify_all()

    def take(self):
        with self.changed:
            self.changed.wait_for(lambda: self.ready)
            connection = self.ready.popleft()
            self.busy.add(connection)
            request = self.waiting[connection].popleft()
            self.changed.notify_all()
            return connection, request

    def done(self, connection):
        with self.changed:
            self.busy.discard(connection)
            if self.waiting.get(connection):
                self.ready.append(connection)
            self.changed.notify_all()
