"""The beginning of your answer to lab 3: a batch program and a stream program that count clicks.

Complete `answer.py`, and check it with `hmb lab check 3`.
"""


def window_of(time, size):
    """Return the start of the window that contains a time."""
    return time


def batch_view(log, end):
    """Return a dictionary that maps (page, window) to the number of clicks at offsets below `end`.

    A window lasts 60 seconds.
    """
    return {}


class SpeedView:
    """A counter for all clicks that the newest batch view does not count."""

    def __init__(self, begin):
        self.counts = {}

    def add(self, offset, click):
        """Count the click at `offset`, unless it has already been counted."""

    def forget(self, end):
        """Remove the clicks at offsets below `end` from the counts, because a new batch view contains them."""


def merge(batch, speed):
    """Return a new dictionary: the counts of a batch view plus the counts of a speed view."""
    return batch


def final_windows(clicks, size, lateness):
    """Return the final windows, and the number of clicks that came too late.

    The watermark is the newest event time so far, minus `lateness`. A window is final when it ends at or before the
    watermark. Return the final windows as a list of pairs (window, count).
    """
    return [], 0
