"""Tests of the leader of a classic group: it looks up the topics, and assigns their partitions to the members."""

from __future__ import annotations

from hmb.client.group.leader import GroupLeader
from hmb.client.group.member import NO_PARTITIONS, TopicLookup
from hmb.client.group.member_metadata import JoinedMember, parse_assignment, subscriptions
from hmb.protocol.topics import TopicPartition
from tests.client.group.members import member_settings

SETTINGS = member_settings(heartbeat_interval=3.0, metadata_max_age=300.0)


def joined(member_id: str, *topics: str) -> JoinedMember:
    (subscription,) = subscriptions(["range"], topics, NO_PARTITIONS, NO_PARTITIONS, -1)
    return JoinedMember(member_id=member_id, metadata=subscription.metadata)


def leader(*members: JoinedMember) -> GroupLeader:
    return GroupLeader(SETTINGS, "range", list(members), now=1_000.0)


def test_the_leader_divides_the_partitions_of_a_topic() -> None:
    it = leader(joined("m", "t"), joined("n", "t"))
    assert it.lookup() == TopicLookup(names=frozenset({"t"}))
    it.looked_up({"t": 3}, 1_000.0)
    it.assign()
    owned = {member: parse_assignment(data) for member, data in it.assignments.items()}
    assert owned == {
        "m": {TopicPartition("t", 0), TopicPartition("t", 1)},
        "n": {TopicPartition("t", 2)},
    }


def test_the_leader_looks_up_the_topics_of_all_members() -> None:
    assert leader(joined("m", "t", "u"), joined("n", "v")).lookup().names == {"t", "u", "v"}


def test_new_partitions_are_a_change() -> None:
    it = leader(joined("m", "t"))
    assert not it.looked_up({"t": 3}, 1_000.0)  # The first lookup has no earlier partition counts to compare with.
    assert not it.looked_up({"t": 3}, 1_300.0)
    assert it.looked_up({"t": 4}, 1_600.0)


def test_a_topic_that_does_not_exist_is_looked_up_again_soon() -> None:
    it = leader(joined("m", "t", "missing"))
    it.looked_up({"t": 3}, 1_000.0)
    assert it.lookup_at == 1_003.0
    it.looked_up({"t": 3, "missing": 1}, 1_003.0)
    assert it.lookup_at == 1_303.0
