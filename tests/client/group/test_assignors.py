"""Tests of the assignors: each partition has one owner, the shares are equal, and few partitions move."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.client.group.assignors import (
    ASSIGNORS,
    Assignment,
    SubscribedMember,
    are_cooperative,
    assign_cooperative_sticky,
    assign_range,
    assign_round_robin,
    assign_sticky,
    check_assignors,
)
from hmb.protocol.topics import TopicPartition


def partitions(*names: str) -> set[TopicPartition]:
    """Return the partitions with these names: "a0 a1" means the partitions 0 and 1 of topic a."""
    return {TopicPartition(name[0], int(name[1:])) for line in names for name in line.split()}


def reader(member_id: str, topics: str = "a", owned: str = "", generation: int = 1, **more: str) -> SubscribedMember:
    held = frozenset(partitions(owned))
    return SubscribedMember(member_id, frozenset(topics), more.get("instance_id"), held, generation if held else -1)


def shown(assignment: Assignment) -> dict[str, str]:
    return {
        member_id: " ".join(f"{topic}{number}" for topic, number in sorted(owned))
        for member_id, owned in assignment.items()
    }


def after(members: list[SubscribedMember], assignment: Assignment, generation: int) -> list[SubscribedMember]:
    return [it._replace(owned=frozenset(assignment[it.member_id]), generation=generation) for it in members]


def test_range_divides_each_topic_into_ranges_as_in_kafka_javadoc() -> None:
    members = [reader("C1", "ab"), reader("C0", "ab")]
    assert shown(assign_range(members, {"a": 3, "b": 3})) == {"C0": "a0 a1 b0 b1", "C1": "a2 b2"}


def test_round_robin_deals_as_in_kafka_javadoc() -> None:
    members = [reader("C0", "ab"), reader("C1", "ab")]
    assert shown(assign_round_robin(members, {"a": 3, "b": 3})) == {"C0": "a0 a2 b1", "C1": "a1 b0 b2"}
    members = [reader("C0", "a"), reader("C1", "ab"), reader("C2", "abc")]
    assert shown(assign_round_robin(members, {"a": 1, "b": 2, "c": 3})) == {"C0": "a0", "C1": "b0", "C2": "b1 c0 c1 c2"}


def test_sticky_moves_only_the_partitions_of_a_member_that_left_as_in_kafkas_javadoc() -> None:
    members = [reader("C0", "abcd"), reader("C1", "abcd"), reader("C2", "abcd")]
    counts = dict.fromkeys("abcd", 2)
    first = assign_sticky(members, counts)
    assert sorted(len(owned) for owned in first.values()) == [2, 3, 3]
    left = [it for it in after(members, first, 1) if it.member_id != "C1"]
    second = assign_sticky(left, counts)
    assert all(first[it.member_id] <= second[it.member_id] for it in left)
    assert [len(owned) for owned in second.values()] == [4, 4]


def test_sticky_balances_members_with_different_topics_as_in_kafka_javadoc() -> None:
    members = [reader("C0", "a"), reader("C1", "ab"), reader("C2", "abc")]
    assert shown(assign_sticky(members, {"a": 1, "b": 2, "c": 3})) == {"C0": "a0", "C1": "b0 b1", "C2": "c0 c1 c2"}


def test_static_members_come_first_and_keep_their_order_when_their_member_ids_change() -> None:
    members = [reader("x-1", instance_id="i1"), reader("a"), reader("b-7", instance_id="i0")]
    assert shown(assign_range(members, {"a": 3})) == {"b-7": "a0", "x-1": "a1", "a": "a2"}


def test_of_two_claims_to_a_partition_the_later_generation_is_right() -> None:
    members = [reader("old", owned="a0 a1", generation=3), reader("new", owned="a0", generation=4)]
    assert partitions("a0") <= assign_sticky(members, {"a": 2})["new"]
    assert partitions("a1") <= assign_sticky(members, {"a": 2})["old"]


def test_cooperative_sticky_leaves_out_partitions_that_another_member_still_owns() -> None:
    members = [reader("old", owned="a0 a1 a2 a3"), reader("new")]
    first = assign_cooperative_sticky(members, {"a": 4})
    assert shown(first) == {"new": "", "old": "a0 a1"}
    second = assign_cooperative_sticky(after(members, first, 2), {"a": 4})
    assert shown(second) == {"new": "a2 a3", "old": "a0 a1"}


def test_cooperative_sticky_assigns_no_partition_that_an_old_generation_may_still_read() -> None:
    members = [reader("late", owned="a0", generation=2), reader("b", owned="a1", generation=3), reader("c")]
    assignment = assign_cooperative_sticky(members, {"a": 3})
    assert "a0" not in shown(assignment)["b"] + shown(assignment)["c"]


def test_a_topic_and_a_group_that_do_not_exist() -> None:
    for assignor in ASSIGNORS.values():
        assert assignor.assign([reader("m", "az")], {"a": 1}) == {"m": partitions("a0")}
        assert assignor.assign([reader("m", "z")], {}) == {"m": set()}
        assert assignor.assign([], {}) == {}


def test_a_member_is_cooperative_only_if_all_its_assignors_are() -> None:
    assert are_cooperative(["cooperative-sticky"])
    assert not are_cooperative(["range", "cooperative-sticky"])
    with pytest.raises(ValueError, match="unknown assignor 'stick'; the assignors are range, roundrobin, sticky"):
        check_assignors(["range", "stick"])
    with pytest.raises(ValueError, match="name an assignor"):
        check_assignors([])


# Results of Kafka 4.3.0: assignor, partition counts of topics, members (id:instance:topics), and their assignments.
ASSIGNMENTS_OF_KAFKA = [
    ("range", "a5 b3 c3", "m9::abc m8::abc", "m8:a0,a1,a2,b0,b1,c0,c1 m9:a3,a4,b2,c2"),
    ("roundrobin", "a5 b3 c3", "m9::abc m8::abc", "m8:a0,a2,a4,b1,c0,c2 m9:a1,a3,b0,b2,c1"),
    ("range", "a3", "m9:: m8:i1:a m7::a m6::", "m6: m7:a2 m8:a0,a1 m9:"),
    ("roundrobin", "a3", "m9:: m8:i1:a m7::a m6::", "m6: m7:a1 m8:a0,a2 m9:"),
    ("range", "a1 b4 c4", "m9:i0:abc m8::abc", "m8:b2,b3,c2,c3 m9:a0,b0,b1,c0,c1"),
    ("roundrobin", "a1 b4 c4", "m9:i0:abc m8::abc", "m8:b0,b2,c0,c2 m9:a0,b1,b3,c1,c3"),
    ("range", "a1 b6 c5", "m9:i0:ac m8:i1:a m7::ac", "m7:c3,c4 m8: m9:a0,c0,c1,c2"),
    ("roundrobin", "a1 b6 c5", "m9:i0:ac m8:i1:a m7::ac", "m7:c0,c2,c4 m8: m9:a0,c1,c3"),
    ("range", "a5 b1", "m9::ab m8::ab m7::ab m6:i3:ab", "m6:a0,a1,b0 m7:a2 m8:a3 m9:a4"),
    ("roundrobin", "a5 b1", "m9::ab m8::ab m7::ab m6:i3:ab", "m6:a0,a4 m7:a1,b0 m8:a2 m9:a3"),
]


@pytest.mark.parametrize(("name", "topics", "group", "expected"), ASSIGNMENTS_OF_KAFKA)
def test_the_results_equal_those_of_kafkas_assignors(name: str, topics: str, group: str, expected: str) -> None:
    counts = {topic[0]: int(topic[1:]) for topic in topics.split()}
    members = [
        SubscribedMember(member_id, frozenset(wanted), instance_id or None)
        for member_id, instance_id, wanted in (member.split(":") for member in group.split())
    ]
    given = dict(share.split(":") for share in expected.split())
    assert ASSIGNORS[name].assign(members, counts) == {
        member_id: partitions(share.replace(",", " ")) for member_id, share in given.items()
    }


COUNTS = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 9), min_size=1)
TOPICS = st.sets(st.sampled_from("abcd")).map("".join)


@st.composite
def groups(draw: st.DrawFn, alike: bool = False) -> tuple[list[SubscribedMember], dict[str, int]]:
    """Generate members with the partitions that each owned before. Two members may claim the same partition."""
    counts = draw(COUNTS)
    every = [TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)]
    same = draw(TOPICS) if alike else None
    members = [
        SubscribedMember(
            f"m{number}",
            frozenset(draw(TOPICS) if same is None else same),
            draw(st.none() | st.just(f"i{number}")),
            frozenset(draw(st.sets(st.sampled_from(every)))),
            draw(st.integers(-1, 3)),
        )
        for number in range(draw(st.integers(1, 6)))
    ]
    return members, counts


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky"])
@given(group=groups())
def test_each_partition_has_one_owner_that_reads_its_topic(
    name: str, group: tuple[list[SubscribedMember], dict[str, int]]
) -> None:
    members, counts = group
    assignment = ASSIGNORS[name].assign(members, counts)
    topics = {member.member_id: member.topics for member in members}
    wanted = set().union(*topics.values())
    owners = Counter(partition for owned in assignment.values() for partition in owned)
    assert owners == Counter(TopicPartition(t, n) for t, count in counts.items() if t in wanted for n in range(count))
    assert all(partition.topic in topics[owner] for owner, owned in assignment.items() for partition in owned)


@pytest.mark.parametrize("name", ASSIGNORS)
@given(group=groups(), random=st.randoms())
def test_the_order_of_the_members_does_not_matter(
    name: str, group: tuple[list[SubscribedMember], dict[str, int]], random: Random
) -> None:
    members, counts = group
    assign = ASSIGNORS[name].assign
    assert assign(random.sample(members, len(members)), counts) == assign(members, counts)


@given(group=groups(alike=True))
def test_sticky_gives_equally_many_partitions_to_members(group: tuple[list[SubscribedMember], dict[str, int]]) -> None:
    members, counts = group
    sizes = [len(owned) for owned in assign_sticky(members, counts).values()]
    assert max(sizes) - min(sizes) <= 1


@given(group=groups())
def test_no_single_move_makes_the_result_of_sticky_more_even(
    group: tuple[list[SubscribedMember], dict[str, int]],
) -> None:
    members, counts = group
    assignment = assign_sticky(members, counts)
    for member in members:
        for owner, owned in assignment.items():
            if any(partition.topic in member.topics for partition in owned):
                assert len(owned) - len(assignment[member.member_id]) <= 1, owner


@given(group=groups(), gone=st.integers(0, 5))
def test_sticky_moves_only_partitions_that_balance_requires(
    group: tuple[list[SubscribedMember], dict[str, int]], gone: int
) -> None:
    members, counts = group
    members = after(members, assign_sticky(members, counts), 4)
    # A second assignment changes nothing.
    assert assign_sticky(members, counts) == {it.member_id: it.owned for it in members}
    left = [it for number, it in enumerate(members) if number != gone]
    # After a member has left, no other member may lose a partition.
    if len({it.topics for it in members}) == 1 and left:
        assignment = assign_sticky(left, counts)
        assert all(it.owned <= assignment[it.member_id] for it in left)


@given(group=groups())
def test_cooperative_sticky_moves_no_owned_partition_and_ends_as_sticky(
    group: tuple[list[SubscribedMember], dict[str, int]],
) -> None:
    members, counts = group
    for generation in range(4, 8):
        assignment = assign_cooperative_sticky(members, counts)
        for giver in members:
            for taker in members:
                if giver is not taker and giver.generation >= taker.generation:
                    assert not (giver.owned - taker.owned) & assignment[taker.member_id]
        members = after(members, assignment, generation)
    every = Counter(partition for it in members for partition in it.owned)
    wanted = set().union(*(it.topics for it in members))
    assert every == Counter(TopicPartition(t, n) for t, count in counts.items() if t in wanted for n in range(count))
