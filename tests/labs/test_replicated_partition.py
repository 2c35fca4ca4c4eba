"""Tests of the partition that lab 11 simulates.

The tests check which acknowledged records the partition loses after a crash, and which records a follower removes from
its log.
"""

from __future__ import annotations

import random

import pytest

from hmb.labs import load_solution
from hmb.labs.replicated_partition import ReplicatedPartition


def partition(acks: str) -> ReplicatedPartition:
    return ReplicatedPartition(load_solution(11), acks)


def test_a_crash_loses_the_record_that_only_the_leader_had() -> None:
    simulated = partition("1")
    simulated.produce("one")
    simulated.fetch("B")
    simulated.produce("two")
    simulated.crash("A")
    assert (simulated.leader, simulated.acknowledged, simulated.lost) == ("B", ["one", "two"], ["two"])


def test_with_acks_all_this_record_is_not_acknowledged() -> None:
    simulated = partition("all")
    simulated.produce("one")
    simulated.fetch("B")
    simulated.fetch("C")
    simulated.produce("two")
    simulated.crash("A")
    assert (simulated.acknowledged, simulated.lost) == (["one"], [])


def test_an_old_leader_removes_the_records_that_the_new_leader_lacks() -> None:
    simulated = partition("1")
    simulated.produce("one")
    simulated.fetch("B")
    simulated.produce("two")
    simulated.crash("A")
    simulated.produce("three")
    simulated.restart("A")
    simulated.fetch("A")
    assert [record.value for record in simulated.logs["A"]] == ["one", "three"]


def test_the_log_of_an_old_leader_counts_only_after_its_first_fetch() -> None:
    """A new leader computes the high watermark only from the logs of replicas that have fetched from it.

    The old leader A and the follower C contain the records "one" and "two", at the offsets 0 and 1. The new leader B
    writes the record "three" at offset 1. All three logs now have two records, but neither A nor C has "three". So B
    must not acknowledge this record yet.
    """
    simulated = partition("all")
    simulated.produce("one")
    simulated.fetch("B")
    simulated.fetch("C")
    simulated.produce("two")
    simulated.fetch("C")
    simulated.crash("A")
    simulated.produce("three")
    assert simulated.leader == "B" and [len(log) for log in simulated.logs.values()] == [2, 2, 2]
    assert simulated.high_watermark == 1 and simulated.acknowledged == ["one"]


def test_without_a_live_replica_in_the_isr_there_is_no_leader() -> None:
    simulated = partition("0")
    for replica in "ABC":
        simulated.crash(replica)
    simulated.produce("into the void")
    assert (simulated.leader, simulated.acknowledged) == (None, ["into the void"])
    simulated.restart("B")
    assert simulated.leader == "B" and simulated.lost == ["into the void"]


@pytest.mark.parametrize("seed", range(20))
def test_the_high_watermark_never_goes_back(seed: int) -> None:
    simulated = partition("all")
    simulated.run(random.Random(seed), 100)
    marks = [state.high_watermark for state in simulated.history]
    assert marks == sorted(marks)
