"""Converts between the messages OffsetCommit and OffsetFetch and dictionaries by topic partition.

OffsetCommit and OffsetFetch group the partitions by topic, and their responses contain an error code for each
partition. From version 8 on, OffsetFetch asks for several groups at once, and all fields move one level down. Only this
module handles these differences. Version 10 of both requests names topics by id instead of by name. A deleted topic has
no id any more, so this client does not use version 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from hmb.client.group.interface import GroupMetadata, OffsetAndMetadata
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.leave_group import LeaveGroupRequest
from hmb.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from hmb.protocol.schema import Request
from hmb.protocol.topics import TopicPartition

# Up to this version, OffsetCommit and OffsetFetch name a topic by its name. Later versions name it by its id.
NEWEST_BY_NAME = OffsetCommitRequest.first_version("topics.topic_id") - 1
FIRST_LEAVE_OF_SEVERAL = LeaveGroupRequest.first_version("members")
FIRST_FETCH_OF_ALL_TOPICS = OffsetFetchResponse.first_version("error_code")
FIRST_FETCH_OF_STABLE = OffsetFetchRequest.first_version("require_stable")
FIRST_FETCH_OF_SEVERAL_GROUPS = OffsetFetchRequest.first_version("groups")
NO_OFFSET = -1  # the committed offset in a response if the group has none for the partition


class FetchedOffsets(NamedTuple):
    """The content of an OffsetFetch response: an error of the whole group, errors of partitions, committed offsets."""

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
    """Return each partition of the response with its error code. The code 0 means success."""
    for topic in response.topics:
        for partition in topic.partitions:
            yield TopicPartition(topic.name, partition.partition_index), partition.error_code


def fetch_request(
    group_id: str, partitions: Iterable[TopicPartition] | None, version: int, *, require_stable: bool = False
) -> OffsetFetchRequest:
    """Return a request for the offsets of these partitions.

    None as `partitions` means all partitions, and needs version 2. With `require_stable` the coordinator waits for open
    transactions. Brokers before Kafka 2.5 ignore `require_stable`.
    """
    numbers: dict[str, list[int]] = {}
    for name, number in partitions or ():
        numbers.setdefault(name, []).append(number)
    request = OffsetFetchRequest(require_stable=require_stable and version >= FIRST_FETCH_OF_STABLE)
    if version < FIRST_FETCH_OF_SEVERAL_GROUPS:
        one = OffsetFetchRequest.OffsetFetchRequestTopic
        topics = [one(name=name, partition_indexes=them) for name, them in numbers.items()]
        request.group_id, request.topics = group_id, None if partitions is None else topics
    else:
        group = OffsetFetchRequest.OffsetFetchRequestGroup
        several = [group.OffsetFetchRequestTopics(name=name, partition_indexes=them) for name, them in numbers.items()]
        request.groups = [group(group_id=group_id, topics=None if partitions is None else several)]
    return request


def fetched_offsets(response: OffsetFetchResponse, version: int) -> FetchedOffsets:
    group = response.groups[0] if version >= FIRST_FETCH_OF_SEVERAL_GROUPS else response
    found = FetchedOffsets(group.error_code, {}, {})
    for topic in group.topics:
        for it in topic.partitions:
            where = TopicPartition(topic.name, it.partition_index)
            if it.error_code and it.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                found.errors[where] = it.error_code
            elif it.committed_offset != NO_OFFSET:  # Kafka 0.8.2 returns UNKNOWN_TOPIC_OR_PARTITION instead.
                found.committed[where] = OffsetAndMetadata(
                    it.committed_offset, it.metadata or "", it.committed_leader_epoch
                )
    return found


def for_version(request: Request, version: int) -> Request:
    """Return a member's request in the form of this version. Old versions of LeaveGroup name only one member."""
    if isinstance(request, LeaveGroupRequest) and version < FIRST_LEAVE_OF_SEVERAL:
        return LeaveGroupRequest(group_id=request.group_id, member_id=request.members[0].member_id)
    return request
