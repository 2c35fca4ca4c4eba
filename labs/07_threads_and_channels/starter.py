"""The beginning of your answer to lab 7: a channel, and threads that get requests from it.

Complete `answer.py`, and check it with `hmb lab check 7`.
"""


class Closed(Exception):
    """`put` raises this error if the channel is closed. `get` raises it if the channel is closed and has no items."""


class Channel:
    """A queue between threads that contains at most `capacity` items."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.items = []

    def put(self, item, timeout=None):
        """Append an item. Wait up to `timeout` seconds while the channel is full."""
        self.items.append(item)

    def get(self, timeout=None):
        """Remove and return the oldest item. Wait up to `timeout` seconds while the channel is empty."""
        return self.items.pop(0)

    def close(self):
        """Close the channel: `put` accepts no more items. `get` still returns the items in the channel."""


def run_stage(requests, handle, handlers, capacity):
    """Call `handle` for each request, and return the responses in the order of the requests.

    The number `handlers` says how many threads call `handle`. These threads take the requests from a channel. The
    channel has room for `capacity` requests.
    """
    return [handle(request) for request in requests]
