"""The beginning of your answer to the second exercise of lab 10: a cooperative rebalance.

Complete `second.py`, and check it with `hmb lab check 10 --second`.
"""


def next_round(owned, target):
    """Return which partitions each consumer owns after the next round of a cooperative rebalance."""
    return {name: list(numbers) for name, numbers in target.items()}


def rounds(owned, target):
    """Return the assignment after each round of a cooperative rebalance, as a list. The last item is `target`.

    `owned` is the assignment before the first round. If it already equals `target`, the list is empty.
    """
    return [target]
