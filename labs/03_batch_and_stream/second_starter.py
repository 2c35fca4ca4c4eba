"""The beginning of your answer to the second exercise of lab 3: sessions.

Complete `second.py`, and check it with `hmb lab check 3 --second`.
"""


class Sessions:
    """The open sessions of all users. A session ends when its user has not clicked for more than `gap` seconds."""

    def __init__(self, gap):
        self.gap = gap

    def add(self, user, time):
        """Add one click. A later call of `add` can have an earlier event time."""

    def open(self, user):
        """Return the open sessions of a user as a list of (first time, last time, clicks), sorted by time."""
        return []

    def close(self, watermark):
        """Remove all final sessions, and return them as a sorted list of (first time, last time, clicks, user)."""
        return []
