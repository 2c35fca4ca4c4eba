"""OffsetCommit and OffsetFetch: what a group has read, to and from the messages that say it.

Both name partitions topic by topic, and both answer each partition for itself. From OffsetFetch 8 on one may ask for
several groups at once, so that everything moves one level down; nothing of that is seen outside of this file. Version
10 of both names topics by their ids, which topics that were deleted no longer have; it is not spoken.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from hmb.client.group.interface import GroupMetadata, OffsetAndMetadata
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.leave_group import LeaveGroupRequest
from hmb.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from hmb.protocol.schema import Request
from hmb.protocol.topics import TopicPartition

NEWEST_BY_NAME = OffsetCommitRequest.first_version("topics.topic_id") - 1  # of OffsetFetch, too
FIRST_LEAVE_OF_SEVERAL = LeaveGroupRequest.first_version("members")
FIRST_FETCH_OF_ALL_TOPICS = OffsetFetchResponse.first_version("error_code")
FIRST_FETCH_OF_STABLE = OffsetFetchRequest.first_version("require_stable")
FIRST_FETCH_OF_SEVERAL_GROUPS = OffsetFetchRequest.first_version("groups")
NOTHING = -1  # committed


class Fetched(NamedTuple):
    """What an OffsetFetch answered: an error of the group as a whole, of partitions, and what they have committed."""

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
    """The error code of each partition, or 0."""
    for topic in response.topics:
        for partition in topic.partitions:
            yield TopicPartition(topic.name, partition.partition_index), partition.error_code


def fetch_request(
    group_id: str, partitions: Iterable[TopicPartition] | None, version: int, *, require_stable: bool = False
) -> OffsetFetchRequest:
    """Of these partitions, or of all (from version 2 on). `require_stable` does nothing with brokers before 2.5."""
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


def fetched(response: OffsetFetchResponse, version: int) -> Fetched:
    answer = response.groups[0] if version >= FIRST_FETCH_OF_SEVERAL_GROUPS else response
    found = Fetched(answer.error_code, {}, {})
    for topic in answer.topics:
        for it in topic.partitions:
            where = TopicPartition(topic.name, it.partition_index)
            if it.error_code and it.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                found.errors[where] = it.error_code
            elif it.committed_offset != NOTHING:  # 0.8.2 calls a partition unknown of which it has no offset
                found.committed[where] = OffsetAndMetadata(
                    it.committed_offset, it.metadata or "", it.committed_leader_epoch
                )
    return found


def for_version(request: Request, version: int) -> Request:
    """Return a member's request in the form that a version has: old versions of LeaveGroup take one member only."""
    if isinstance(request, LeaveGroupRequest) and version < FIRST_LEAVE_OF_SEVERAL:
        return LeaveGroupRequest(group_id=request.group_id, member_id=request.members[0].member_id)
    return request
