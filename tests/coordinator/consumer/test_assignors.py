"""Tests of the assignors. An assignor divides the partitions of a group's topics among the group's members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.coordinator.consumer.assignors import ASSIGNORS, MemberToAssign, Targets, assign_range, assign_uniform
from hmb.protocol.topics import PartitionId

A, B, C = (UUID(int=number) for number in (1, 2, 3))
PARTITIONS = st.dictionaries(st.sampled_from([A, B, C]), st.integers(1, 7))
READ = st.frozensets(st.sampled_from([A, B, C]))


def member(name: str, *topics: UUID, instance: str | None = None, owned: Iterable[PartitionId] = ()) -> MemberToAssign:
    return MemberToAssign(name, instance, frozenset(topics), frozenset(owned))


def numbers(targets: Targets) -> dict[str, list[int]]:
    return {name: sorted(each.partition for each in owned) for name, owned in targets.items()}


def check_owned_once(members: list[MemberToAssign], partitions: Mapping[UUID, int], targets: Targets) -> None:
    assert targets.keys() == {each.member_id for each in members}
    owners = Counter(partition for owned in targets.values() for partition in owned)
    read = frozenset().union(*(each.topics for each in members))
    wanted = {PartitionId(topic, n) for topic, count in partitions.items() if topic in read for n in range(count)}
    assert owners == dict.fromkeys(wanted, 1)
    for each in members:
        assert {partition.topic_id for partition in targets[each.member_id]} <= each.topics


@given(st.lists(READ, max_size=6), PARTITIONS, st.sampled_from(sorted(ASSIGNORS)), st.data())
def test_each_partition_has_one_owner_that_subscribes_to_it(
    reads: list[frozenset[UUID]], partitions: dict[UUID, int], assignor: str, data: st.DataObject
) -> None:
    members = [member(f"m{number}", *topics) for number, topics in enumerate(reads)]
    targets = ASSIGNORS[assignor](members, partitions)
    check_owned_once(members, partitions, targets)
    # Before the next assignment, members leave or change their subscriptions, and topics grow or are deleted.
    left = [
        member(each.member_id, *data.draw(READ), owned=targets[each.member_id])
        for each in members
        if data.draw(st.booleans())
    ]
    later = data.draw(PARTITIONS)
    check_owned_once(left, later, ASSIGNORS[assignor](left, later))


@given(st.integers(1, 9), PARTITIONS, st.data())
def test_uniform_divides_evenly_among_members_with_the_same_subscription(
    count: int, partitions: dict[UUID, int], data: st.DataObject
) -> None:
    everything = [PartitionId(topic, n) for topic, number in partitions.items() for n in range(number)]
    # The owner `count` means that no member owns the partition.
    owners = {partition: data.draw(st.integers(0, count)) for partition in everything}
    members = [
        member(f"m{n}", *partitions, owned=[each for each, owner in owners.items() if owner == n]) for n in range(count)
    ]
    targets = assign_uniform(members, partitions)
    sizes = sorted(len(owned) for owned in targets.values())
    assert sizes[-1] - sizes[0] <= 1
    # Sticky: a member keeps its partitions up to its share.
    for each in members:
        assert len(targets[each.member_id] & each.owned) >= min(len(each.owned), len(everything) // count)


def test_uniform_moves_no_more_than_it_must() -> None:
    members = [member(name, A) for name in "abc"]
    first = assign_uniform(members, {A: 9})
    joined = [member(name, A, owned=first.get(name, ())) for name in "abcd"]
    second = assign_uniform(joined, {A: 9})
    assert sorted(map(len, second.values())) == [2, 2, 2, 3]
    assert all(second[name] <= first[name] for name in "abc")
    left = [member(name, A, owned=second[name]) for name in "abd"]
    third = assign_uniform(left, {A: 9})
    assert all(third[name] >= second[name] for name in "abd")


def test_uniform_balances_members_with_different_subscriptions() -> None:
    members = [member("a", A, B), member("b", A), member("c", B, C)]
    targets = assign_uniform(members, {A: 4, B: 4, C: 1})
    assert {name: len(owned) for name, owned in targets.items()} == {"a": 3, "b": 3, "c": 3}
    lonely = [member("a", A, owned=[PartitionId(A, n) for n in range(6)]), member("b", A, B), member("c", B)]
    targets = assign_uniform(lonely, {A: 6, B: 2})
    assert sorted(len(owned) for owned in targets.values()) == [2, 3, 3]
    assert targets["a"] <= lonely[0].owned


def test_range_divides_topics_of_the_same_size_in_the_same_way() -> None:
    targets = assign_range([member(name, A, B) for name in "cab"], {A: 7, B: 7})
    assert numbers(targets) == {"a": [0, 0, 1, 1, 2, 2], "b": [3, 3, 4, 4], "c": [5, 5, 6, 6]}
    assert numbers(assign_range([member(name, A) for name in "abc"], {A: 2})) == {"a": [0], "b": [1], "c": []}


def test_static_members_come_first_and_keep_their_order() -> None:
    members = [member("z-1", A, instance="i1"), member("a", A), member("y-1", A, instance="i2")]
    assert numbers(assign_range(members, {A: 3})) == {"z-1": [0], "y-1": [1], "a": [2]}


@pytest.mark.parametrize("assignor", sorted(ASSIGNORS))
def test_no_members_or_no_topics(assignor: str) -> None:
    assert ASSIGNORS[assignor]([], {A: 3}) == {}
    assert ASSIGNORS[assignor]([member("a")], {A: 3}) == {"a": frozenset()}
    assert ASSIGNORS[assignor]([member("a", A)], {}) == {"a": frozenset()}
