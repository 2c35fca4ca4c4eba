"""Tests for the requirements of lab 11.

In each test, `answer` is the student's module `answer.py`, and `rng` generates random test cases.
"""

import random

from hmb.labs.replicated_partition import ReplicatedPartition


def compare(answer, name, arguments, expected):
    found = getattr(answer, name)(*arguments)
    call = f"{name}({', '.join(map(repr, arguments))})"
    assert found == expected, f"{call} returns {found!r} (right: {expected!r})"


def test_high_watermark(answer, rng):
    """`high_watermark` returns the offset after the last record that all in-sync replicas have.

    For example, replica A has the records at offsets 0 to 6, and replica B has those at offsets 0 to 4. If both
    are in sync, the high watermark is 5.
    """
    compare(answer, "high_watermark", ({"A": 3}, ["A"]), 3)
    compare(answer, "high_watermark", ({"A": 3, "B": 2}, ["A", "B"]), 2)
    compare(answer, "high_watermark", ({"A": 5, "B": 2, "C": 4}, ["A", "C"]), 4)
    for _ in range(50):
        ends = {name: rng.randrange(10) for name in "ABC"}
        isr = sorted(rng.sample("ABC", rng.randrange(1, 4)))
        compare(answer, "high_watermark", (ends, isr), sorted(ends[name] for name in isr)[0])


def test_in_sync(answer, rng):
    """`in_sync` returns the leader and all followers that are in sync.

    For example, `caught_up_at["B"]` is 7 if follower B last had all of the leader's records at step 7. At step
    `now`, B is in sync if `now - 7` is at most `max_lag`.
    """
    compare(answer, "in_sync", ("AB", "A", {"A": 9, "B": 9}, 9, 3), ["A", "B"])
    compare(answer, "in_sync", ("AB", "A", {"A": 9, "B": 6}, 9, 3), ["A", "B"])
    compare(answer, "in_sync", ("AB", "A", {"A": 9, "B": 5}, 9, 3), ["A"])
    compare(answer, "in_sync", ("AB", "B", {"A": 8, "B": 2}, 9, 3), ["A", "B"])
    for _ in range(50):
        caught_up = {name: rng.randrange(10) for name in "ABC"}
        leader, now = rng.choice("ABC"), rng.randrange(9, 12)
        expected = sorted({leader} | {name for name, time in caught_up.items() if time >= now - 4})
        compare(answer, "in_sync", ("ABC", leader, caught_up, now, 4), expected)


def test_elect(answer):
    """`elect` returns the first replica that is alive and in sync, or None."""
    compare(answer, "elect", ("ABC", ["A", "B", "C"], {"B", "C"}), "B")
    compare(answer, "elect", ("ABC", ["A", "C"], {"B", "C"}), "C")
    compare(answer, "elect", ("ABC", ["A"], {"B", "C"}), None)
    compare(answer, "elect", ("CAB", ["A", "B", "C"], {"A", "B"}), "A")


def test_common_length(answer, rng):
    """`common_length` returns how many records at the beginning of the follower's log are also in the leader's log."""
    compare(answer, "common_length", ([0, 0], [0, 0]), 2)
    compare(answer, "common_length", ([0, 0], [0, 0, 1]), 2)
    compare(answer, "common_length", ([0, 0, 0], [0, 0]), 2)
    compare(answer, "common_length", ([0, 0, 0], [0, 0, 1, 1]), 2)
    compare(answer, "common_length", ([], [0, 1]), 0)
    for _ in range(50):
        common = sorted(rng.choices([0, 1], k=rng.randrange(5)))
        compare(answer, "common_length", ([*common, 2, 2][: len(common) + rng.randrange(3)], [*common, 3]), len(common))


def test_acknowledgements(answer):
    """`is_acknowledged` returns whether the record is acknowledged.

    If `acks` is "0", every record is acknowledged at once. If `acks` is "1", a record is acknowledged as soon as the
    leader has it. If `acks` is "all", a record is acknowledged as soon as its offset is below the high watermark.
    """
    for offset, leader_end, mark in ((0, 1, 1), (4, 5, 4), (3, 5, 4), (4, 5, 5), (2, 5, 0)):
        compare(answer, "is_acknowledged", ("0", offset, leader_end, mark), True)
        compare(answer, "is_acknowledged", ("1", offset, leader_end, mark), True)
        compare(answer, "is_acknowledged", ("all", offset, leader_end, mark), offset < mark)
    compare(answer, "is_acknowledged", ("1", 5, 5, 5), False)


def partition_after(answer, acks, seed):
    partition = ReplicatedPartition(answer, acks)
    partition.run(random.Random(seed), 60)
    return partition


def test_all_loses_nothing(answer, rng):
    """With acks=all, 300 random runs with crashes lose no acknowledged record."""
    for _ in range(300):
        seed = rng.randrange(10**6)
        partition = partition_after(answer, "all", seed)
        steps = ", ".join(each.step for each in partition.history[-5:])
        assert not partition.lost, f"run {seed}: {partition.lost[0]!r} was acknowledged and is lost after {steps}"


def test_one_loses_records(answer, rng):
    """At least one of 300 random runs with crashes and acks=1 loses an acknowledged record."""
    seeds = [rng.randrange(10**6) for _ in range(300)]
    partitions = [partition_after(answer, "1", seed) for seed in seeds]
    has_loss = any(each.lost for each in partitions)
    assert has_loss, "300 runs with acks=1 lose no record; does every election find a leader?"


def test_all_acknowledges(answer, rng):
    """In 100 random runs with crashes and acks=all, more than half of the produced records are acknowledged."""
    acknowledged = produced = 0
    for _ in range(100):
        partition = partition_after(answer, "all", rng.randrange(10**6))
        produced += sum(each.step.startswith("produce") for each in partition.history)
        acknowledged += len(partition.acknowledged)
    assert acknowledged > produced / 2, f"100 runs with acks=all acknowledge only {acknowledged} of {produced} records"
