"""The beginning of your answer to the second exercise of lab 10: a cooperative rebalance.

Complete `second.py`, and check it with `hmb lab check 10 --second`.
"""


def next_round(owned, target):
    """Return which partitions each consumer owns after the next round of a cooperative rebalance."""
    return {name: list(numbers) for name, numbers in target.items()}


def rounds(owned, target):
    """Return a list with the assignment after each round, up to the round that reaches `target`."""
    return [target]
