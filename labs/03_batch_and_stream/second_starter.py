"""The beginning of your answer to the second exercise of lab 3: sessions.

Complete `second.py`, and check it with `hmb lab check 3 --second`.
"""


class Sessions:
    """The open sessions of all users. A session ends when its user has not clicked for more than `gap` seconds."""

    def __init__(self, gap):
        self.gap = gap

    def add(self, user, time):
        """Add one click. Clicks can arrive late, so `time` can be smaller than in an earlier call."""

    def open(self, user):
        """Return the open sessions of a user as a list of (first time, last time, clicks), sorted by time."""
        return []

    def close(self, watermark):
        """Remove all sessions that can get no more clicks, and return them.

        After this call, the time of each new click is `watermark` or later. The result contains the sessions of all
        users: a sorted list of tuples (first time, last time, number of clicks, user).
        """
        return []
