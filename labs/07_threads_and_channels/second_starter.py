"""The beginning of your answer to the second exercise of lab 7: a channel for the requests of many connections.

Complete `second.py`, and check it with `hmb lab check 7 --second`.
"""

import threading


class Requests:
    """The requests of all connections. At most one request of each connection is in progress at a time."""

    def __init__(self, limit):
        self.limit = limit
        self.requests = []
        self.changed = threading.Condition()

    def put(self, connection, request):
        """Block while the number of the connection's waiting requests is `limit`, and then add the request."""
        with self.changed:
            self.requests.append((connection, request))
            self.changed.notify_all()

    def take(self):
        """Return the next (connection, request). Wait while no connection is ready.

        A connection is ready if it has a waiting request, and no request in progress.
        """
        with self.changed:
            self.changed.wait_for(lambda: self.requests)
            return self.requests.pop(0)

    def done(self, connection):
        """Mark the request that `take` returned for this connection as handled.

        Only after this call can `take` return the connection's next request.
        """
