"""Test cases for OffsetCommit, OffsetFetch and OffsetDelete: simple consumers, members, and unknown groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hmb.protocol.messages.offset_commit import OffsetCommitRequest
from hmb.protocol.messages.offset_delete import OffsetDeleteRequest
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest

from ..case import NOBODYS_ID, Case, captured, case, id_of
from .groups import emptied, joined, second_joins, stable, static

ME = captured("member")
Topic = OffsetCommitRequest.OffsetCommitRequestTopic
Partition = Topic.OffsetCommitRequestPartition
OldTopic = OffsetFetchRequest.OffsetFetchRequestTopic
Group = OffsetFetchRequest.OffsetFetchRequestGroup
NewTopic = Group.OffsetFetchRequestTopics
OFFSETS = {0: 5, 1: 6}


def commit(
    topic: str = "three",
    offsets: Mapping[int, int] = OFFSETS,
    topic_id: Any = None,
    metadata: str | None = "m",
    epoch: int = -1,
    **options: Any,
) -> OffsetCommitRequest:
    """Return an OffsetCommit request. By default, its sender is not a member of the group."""
    parts = [
        Partition(
            partition_index=index, committed_offset=offset, committed_metadata=metadata, committed_leader_epoch=epoch
        )
        for index, offset in offsets.items()
    ]
    topics = [Topic(name=topic, topic_id=id_of(topic) if topic_id is None else topic_id, partitions=parts)]
    return OffsetCommitRequest(**{"group_id": "<name>", "topics": topics, **options})


def by_member(generation: int = 1, member: Any = ME, **options: Any) -> OffsetCommitRequest:
    return commit(generation_id_or_member_epoch=generation, member_id=member, **options)


def fetch(
    topics: Mapping[str, list[int]] | None = None,
    group: str = "<name>",
    stable: bool = False,
    unknown: bool = False,
    **options: Any,
) -> Callable[[int], OffsetFetchRequest]:
    """Return a function that takes a version, and returns an OffsetFetch request in this version.

    If `topics` is None, the request asks for the offsets of all topics.
    """

    def request(version: int) -> OffsetFetchRequest:
        if version < 8:
            old = None if topics is None else [OldTopic(name=n, partition_indexes=p) for n, p in topics.items()]
            return OffsetFetchRequest(group_id=group, topics=old, require_stable=stable and version == 7)
        new = None
        if topics is not None:
            new = [
                NewTopic(name=n, topic_id=NOBODYS_ID if unknown else id_of(n), partition_indexes=p)
                for n, p in topics.items()
            ]
        return OffsetFetchRequest(groups=[Group(group_id=group, topics=new, **options)], require_stable=stable)

    return request


def groups(*wanted: Group) -> OffsetFetchRequest:
    return OffsetFetchRequest(groups=list(wanted))


def delete(topics: Mapping[str, list[int]], group: str = "<name>") -> OffsetDeleteRequest:
    topic, partition = (
        OffsetDeleteRequest.OffsetDeleteRequestTopic,
        OffsetDeleteRequest.OffsetDeleteRequestTopic.OffsetDeleteRequestPartition,
    )
    return OffsetDeleteRequest(
        group_id=group,
        topics=[topic(name=n, partitions=[partition(partition_index=p) for p in parts]) for n, parts in topics.items()],
    )


def then_fetched(name: str, *steps: Any, **options: Any) -> Case:
    """Make a test case that commits offsets and then fetches the offsets of the group."""
    return case(name, *steps, fetch(), api_key=OffsetCommitRequest.api_key, **options)


COMMIT = [
    then_fetched("simple", commit()),
    then_fetched("again", commit(), commit(offsets={0: 3})),
    then_fetched("null metadata", commit(metadata=None)),
    then_fetched("empty metadata", commit(metadata="")),
    then_fetched("metadata of 4,096", commit(metadata="x" * 4096)),
    then_fetched("metadata of 4,097", commit(metadata="x" * 4097)),
    then_fetched("metadata of 4,096 umlauts", commit(metadata="ä" * 4096)),
    then_fetched("offset -1", commit(offsets={0: -1})),
    then_fetched("offset -5", commit(offsets={0: -5})),
    then_fetched("offset of the highest", commit(offsets={0: 2**63 - 1})),
    then_fetched("leader epoch", commit(epoch=3), versions="6+"),
    then_fetched("leader epoch -2", commit(epoch=-2), versions="6+"),
    then_fetched("retention", commit(retention_time_ms=100_000), versions="2-4"),
    then_fetched("retention 0", commit(retention_time_ms=0), versions="2-4"),
    then_fetched("no topics", commit(topics=[])),
    then_fetched("no partitions", commit(offsets={})),
    then_fetched("unknown topic", commit("nobody", topic_id=NOBODYS_ID)),
    then_fetched("bad name", commit("a/b", topic_id=NOBODYS_ID), versions="2-9"),
    then_fetched("unknown partition", commit(offsets={0: 1, 7: 1})),
    then_fetched("negative partition", commit(offsets={-1: 1})),
    then_fetched(
        "known and unknown topic", commit(topics=[*commit().topics, *commit("nobody", topic_id=NOBODYS_ID).topics])
    ),
    then_fetched("same topic twice", commit(topics=[*commit().topics, *commit(offsets={0: 9}).topics])),
    then_fetched(
        "same partition twice",
        commit(
            topics=[
                Topic(name="three", topic_id=id_of("three"), partitions=[Partition(committed_offset=n) for n in (1, 2)])
            ]
        ),
    ),
    case("empty group id", commit(group_id="")),
    then_fetched("generation 0", commit(generation_id_or_member_epoch=0)),
    then_fetched("generation -2", commit(generation_id_or_member_epoch=-2)),
    then_fetched("member of an unknown group", commit(generation_id_or_member_epoch=1, member_id="nobody")),
    then_fetched("member id, generation -1", commit(member_id="nobody")),
    then_fetched("instance, generation -1", commit(group_instance_id="instance"), versions="7+"),
    then_fetched("member", *stable(), by_member()),
    *(then_fetched(f"member, generation {n}", *stable(), by_member(n)) for n in (-1, 0, 2)),
    then_fetched("stable, unknown member", *stable(), by_member(1, "nobody")),
    then_fetched("stable, simple", *stable(), commit()),
    then_fetched("stable, empty member id", *stable(), by_member(1, "")),
    then_fetched("not synced", *joined(), by_member()),
    then_fetched("rebalancing", *second_joins(), by_member()),
    then_fetched("emptied, simple", *emptied(), commit()),
    then_fetched("emptied, member", *emptied(), by_member()),
    then_fetched("static", *static(), by_member(group_instance_id="instance"), versions="7+"),
    then_fetched("static, wrong id", *static(), by_member(1, "nobody", group_instance_id="instance"), versions="7+"),
    then_fetched("static, unknown instance", *static(), by_member(group_instance_id="another"), versions="7+"),
]
FETCH = [
    case("unknown group", fetch({"three": [0, 1]})),
    case("unknown group, all", fetch(), versions="2+"),
    case("empty group id", fetch({"three": [0]}, group="")),
    case("empty group id, all", fetch(group=""), versions="2+"),
    case("committed", commit(), fetch({"three": [0, 1]})),
    case("committed, all", commit(), fetch(), versions="2+"),
    case("committed and not", commit(), fetch({"three": [0, 2, 7, -1]})),
    case("same partition twice", commit(), fetch({"three": [0, 0]})),
    case("no topics", commit(), fetch({})),
    case("no partitions", commit(), fetch({"three": []})),
    case("unknown topic", commit(), fetch({"nobody": [0]}, unknown=True)),
    case("leader epoch", commit(epoch=3), fetch({"three": [0]})),
    case("stable only", commit(), fetch({"three": [0, 1]}, stable=True), versions="7+"),
    case(
        "two groups",
        commit(),
        groups(Group(group_id="<name>", topics=None), Group(group_id="nobody", topics=None)),
        versions="8+",
    ),
    case(
        "same group twice",
        commit(),
        groups(Group(group_id="<name>", topics=None), Group(group_id="<name>", topics=None)),
        versions="8+",
    ),
    case("no groups", groups(), versions="8+"),
    case("unknown member", commit(), fetch(member_id="nobody", member_epoch=1), versions="9+"),
    case("member of a classic group", *stable(), fetch({"three": [0]}, member_id=ME, member_epoch=1), versions="9+"),
    case(
        "classic group, wrong generation", *stable(), fetch({"three": [0]}, member_id=ME, member_epoch=7), versions="9+"
    ),
    case("unknown group, with member", fetch(member_id="nobody", member_epoch=1), versions="9+"),
    case("epoch without member", commit(), fetch(member_epoch=1), versions="9+"),
    case("member without epoch", *stable(), fetch(member_id=ME), versions="9+"),
]
DELETE = [
    case("unknown group", delete({"three": [0]})),
    case("empty group id", delete({"three": [0]}, group="")),
    case("committed", commit(), delete({"three": [0]}), fetch(), api_key=OffsetDeleteRequest.api_key),
    case("not committed", commit(), delete({"three": [2]})),
    case("unknown topic", commit(), delete({"nobody": [0]})),
    case("unknown partition", commit(), delete({"three": [0, 9, -1]})),
    case("no topics", commit(), delete({})),
    case("no partitions", commit(), delete({"three": []})),
    case("same partition twice", commit(), delete({"three": [0, 0]})),
    case("bad name", commit(), delete({"a/b": [0]})),
    case("stable, subscribed", *stable(), by_member(), delete({"three": [0]})),
    case("stable, not subscribed", *stable(), by_member(topic="empty"), delete({"empty": [0]})),
    case("stable, no consumers", *stable(protocol_type="connect"), delete({"three": [0]})),
    case("emptied", *emptied(), commit(), delete({"three": [0, 1]})),
    case("not synced", *joined(), delete({"three": [0]})),
]
CASES: list[Case] = [*COMMIT, *FETCH, *DELETE]
