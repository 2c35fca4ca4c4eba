"""The beginning of your answer to the second exercise of lab 10: a cooperative rebalance.

Complete `second.py`, and check it with `hmb lab check 10 --second`.
"""


def next_round(owned, target):
    """Return which partitions each consumer owns after the next round of a cooperative rebalance."""
    return {name: list(numbers) for name, numbers in target.items()}


def rounds(owned, target):
    """Return a list of assignments: one after each round of a cooperative rebalance.

    `owned` is the assignment before round 1. The list is empty if `owned` equals `target`. Otherwise, the last
    item is `target`.
    """
    return [target]
