"""The beginning of your answer to the second exercise of lab 10: a cooperative rebalance.

Complete `second.py`, and check it with `hmb lab check 10 --second`.
"""


def next_round(owned, target):
    """Return which partitions each consumer owns after the next round of a cooperative rebalance."""
    return {name: list(numbers) for name, numbers in target.items()}


def rounds(owned, target):
    """Return a list with the assignment after each round of a cooperative rebalance.

    The rebalance begins with the assignment `owned`, and ends with `target`. If `owned` equals `target`, no round
    is necessary, and the list is empty.
    """
    return [target]
