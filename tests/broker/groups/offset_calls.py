"""Helpers for tests: OffsetCommit, OffsetFetch and OffsetDelete requests, in the form that each version requires."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.join_group import JoinGroupRequest
from hmb.protocol.messages.offset_commit import OffsetCommitRequest
from hmb.protocol.messages.offset_delete import OffsetDeleteRequest
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.broker.conftest import Asker

Topic = OffsetCommitRequest.OffsetCommitRequestTopic
Partition = Topic.OffsetCommitRequestPartition
FetchedGroup = OffsetFetchRequest.OffsetFetchRequestGroup
DeletedTopic = OffsetDeleteRequest.OffsetDeleteRequestTopic
Found = dict[int, tuple[int, int, str, int]]  # partition -> offset, leader epoch, metadata, error
NOBODY = UUID(int=9)
NEWEST = OffsetCommitRequest.versions[-1]
BEFORE_IDS = 9


def topic_id(ask: Asker, name: str) -> UUID:
    topic = ask.broker.topics.get(name)
    return NOBODY if topic is None else topic.id


def named(ask: Asker, name: str, version: int) -> dict[str, Any]:
    return {"topic_id": topic_id(ask, name)} if version >= 10 else {"name": name}


def commit(
    ask: Asker, partitions: dict[int, int], version: int = NEWEST, *, group: str = "g", topic: str = "t", **fields: Any
) -> list[tuple[int, int]]:
    """Commit an offset for each partition. Return `[(partition, error code)]` from the response."""
    of_partition = {name: fields.pop(name) for name in list(fields) if name in Partition.fields}
    of_partition.setdefault("committed_metadata", "")
    wanted = [Partition(partition_index=i, committed_offset=at, **of_partition) for i, at in partitions.items()]
    fields.setdefault("generation_id_or_member_epoch", -1)
    request = OffsetCommitRequest(
        group_id=group, topics=[Topic(**named(ask, topic, version), partitions=wanted)], **fields
    )
    return [(p.partition_index, p.error_code) for t in ask(request, version).topics for p in t.partitions]


def fetch_group(ask: Asker, indexes: Sequence[int] | None, version: int, group: str, topic: str) -> Any:
    """Send an OffsetFetch request for a group. Return the part of the response that belongs to this group.

    In versions below 8, this part is the whole response.
    """
    if version < 8:
        topics = [OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=list(indexes or ()))]
        return ask(OffsetFetchRequest(group_id=group, topics=None if indexes is None else topics), version)
    wanted = [
        FetchedGroup.OffsetFetchRequestTopics(**named(ask, topic, version), partition_indexes=list(indexes or ()))
    ]
    request = OffsetFetchRequest(groups=[FetchedGroup(group_id=group, topics=None if indexes is None else wanted)])
    return ask(request, version).groups[0]


def fetch(
    ask: Asker, indexes: Sequence[int] | None = (0,), version: int = 9, *, group: str = "g", topic: str = "t"
) -> Found:
    answer = fetch_group(ask, indexes, version, group, topic)
    assert answer.error_code == 0
    return {
        p.partition_index: (p.committed_offset, p.committed_leader_epoch, p.metadata, p.error_code)
        for t in answer.topics
        for p in t.partitions
    }


def offsets(ask: Asker, **fields: Any) -> dict[int, int]:
    return {index: found[0] for index, found in fetch(ask, None, **fields).items()}


def join(ask: Asker) -> tuple[str, int]:
    """Send JoinGroup requests for a first member, but no SyncGroup. Return the member id and the generation."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(
        name="range", metadata=b"\0\0" + b"\0\0\0\1\0\1t" + b"\xff" * 4
    )
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    answer = ask(request, 3)
    assert answer.error_code == 0
    return answer.member_id, answer.generation_id


def restarted(ask: Asker, make_asker: Callable[..., Asker]) -> Asker:
    ask.close()
    asker = make_asker()
    await_loaded(asker)
    return asker


def await_loaded(ask: Asker) -> None:
    while fetch_group(ask, None, 9, "g", "t").error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        pass  # Another thread loads the offsets. If it never finishes, pytest's timeout ends this loop.


def delete(ask: Asker, topics: dict[str, list[int]], group: str = "g") -> Any:
    wanted = [
        DeletedTopic(name=name, partitions=[DeletedTopic.OffsetDeleteRequestPartition(partition_index=i) for i in each])
        for name, each in topics.items()
    ]
    return ask(OffsetDeleteRequest(group_id=group, topics=wanted), 0)
