"""Builds OffsetCommit and OffsetFetch requests, and reads the responses to these requests.

OffsetCommit and OffsetFetch messages group the partitions by topic. A response contains an error code for each
partition. From version 8 on, an OffsetFetch request contains a list of groups. This module hides these details from the
other modules.

From version 10 on, OffsetCommit and OffsetFetch requests contain topic ids instead of names. The client uses only
versions below 10, because it also requests the offsets of deleted topics, and a deleted topic has no id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from hmb.client.group.interface import GroupMetadata, OffsetAndMetadata
from hmb.protocol.enums import NO_OFFSET
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.leave_group import FIRST_VERSION_OF_MEMBERS, LeaveGroupRequest
from hmb.protocol.messages.offset_commit import (
    FIRST_OFFSET_COMMIT_VERSION_OF_IDS,
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from hmb.protocol.messages.offset_fetch import FIRST_VERSION_OF_GROUPS, OffsetFetchRequest, OffsetFetchResponse
from hmb.protocol.schema import Request
from hmb.protocol.topics import TopicPartition

# The newest version in which OffsetCommit and OffsetFetch contain topic names. Later versions contain topic ids.
NEWEST_BY_NAME = FIRST_OFFSET_COMMIT_VERSION_OF_IDS - 1
FIRST_FETCH_OF_STABLE = OffsetFetchRequest.first_version("require_stable")


class FetchedOffsets(NamedTuple):
    """The content of an OffsetFetch response.

    `error_code` is the error of the whole group. `errors` and `committed` contain the errors and the offsets of
    partitions.
    """

    error_code: int
    errors: dict[TopicPartition, int]
    committed: dict[TopicPartition, OffsetAndMetadata]


def commit_request(identity: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> OffsetCommitRequest:
    topics: dict[str, OffsetCommitRequest.OffsetCommitRequestTopic] = {}
    for (name, number), (offset, metadata, leader_epoch) in offsets.items():
        topic = topics.setdefault(name, OffsetCommitRequest.OffsetCommitRequestTopic(name=name))
        topic.partitions.append(
            topic.OffsetCommitRequestPartition(
                partition_index=number,
                committed_offset=offset,
                committed_leader_epoch=leader_epoch,
                committed_metadata=metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=identity.group_id,
        generation_id_or_member_epoch=identity.generation_id,
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        topics=list(topics.values()),
    )


def commit_codes(response: OffsetCommitResponse) -> Iterator[tuple[TopicPartition, int]]:
    """Yield each partition of the response with its error code. 0 means success."""
    for topic in response.topics:
        for partition in topic.partitions:
            yield TopicPartition(topic.name, partition.partition_index), partition.error_code


def fetch_request(
    group_id: str, partitions: Iterable[TopicPartition] | None, version: int, *, require_stable: bool = False
) -> OffsetFetchRequest:
    """Return an OffsetFetch request for the committed offsets of a group.

    If `partitions` is None, the request asks for all partitions with a committed offset. This needs `version` 2 or
    later.

    An open transaction may contain a newer offset of a partition. If `require_stable` is true, the coordinator
    answers with an error for this partition. The function ignores `require_stable` if `version` is below 7 (before
    Kafka 2.5).
    """
    numbers: dict[str, list[int]] = {}
    for name, number in partitions or ():
        numbers.setdefault(name, []).append(number)
    request = OffsetFetchRequest(require_stable=require_stable and version >= FIRST_FETCH_OF_STABLE)
    if version < FIRST_VERSION_OF_GROUPS:
        one = OffsetFetchRequest.OffsetFetchRequestTopic
        topics = [one(name=name, partition_indexes=them) for name, them in numbers.items()]
        request.group_id, request.topics = group_id, None if partitions is None else topics
    else:
        group = OffsetFetchRequest.OffsetFetchRequestGroup
        several = [group.OffsetFetchRequestTopics(name=name, partition_indexes=them) for name, them in numbers.items()]
        request.groups = [group(group_id=group_id, topics=None if partitions is None else several)]
    return request


def fetched_offsets(response: OffsetFetchResponse, version: int) -> FetchedOffsets:
    group = response.groups[0] if version >= FIRST_VERSION_OF_GROUPS else response
    found = FetchedOffsets(group.error_code, {}, {})
    for topic in group.topics:
        for it in topic.partitions:
            where = TopicPartition(topic.name, it.partition_index)
            if it.error_code and it.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                found.errors[where] = it.error_code
            elif it.committed_offset != NO_OFFSET:  # Kafka 0.8.2 returns an error instead of NO_OFFSET.
                found.committed[where] = OffsetAndMetadata(
                    it.committed_offset, it.metadata or "", it.committed_leader_epoch
                )
    return found


def for_version(request: Request, version: int) -> Request:
    """Return the request, changed if `version` needs another format.

    Only LeaveGroup changes: its old versions contain one member id instead of a list of members.
    """
    if isinstance(request, LeaveGroupRequest) and version < FIRST_VERSION_OF_MEMBERS:
        return LeaveGroupRequest(group_id=request.group_id, member_id=request.members[0].member_id)
    return request
