"""OffsetFetch: return the committed offsets of groups.

Versions: 0-10; versions 6 and later use the flexible encoding (KIP-482).
Permissions: DESCRIBE on the group, and on each topic.
Behavior: the broker answers by these rules:
    - *No offset.* If the group has no committed offset for a partition, this partition gets the offset -1 and
      no error. This is also true if the group does not exist.
    - *All topics.* If the request contains null instead of a list of topics, the response contains all topics
      for which the group has committed offsets.
    - *New topics.* If a topic was deleted and created again, the response contains no offsets of the old topic.
    - *Topic ids.* If a requested topic id does not exist, the error is UNKNOWN_TOPIC_ID.
Version notes: these versions differ:
    - *Version 0.* Kafka read the offsets from ZooKeeper. HMB reads them from `__consumer_offsets`. A partition
      without a committed offset gets the error UNKNOWN_TOPIC_OR_PARTITION.
    - *Versions 0 and 1.* If the group has an error, each partition in the response contains this error.
    - *Versions 7 and later.* If a client sets `require_stable`, and an open transaction contains an offset for
      a partition, this partition gets UNSTABLE_OFFSET_COMMIT.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from uuid import UUID

from hmb.broker.context import RequestContext
from hmb.broker.shared_responses import check_repetitions
from hmb.coordinator.offsets import CommittedOffset
from hmb.protocol.enums import NO_OFFSET
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.offset_fetch import (
    FIRST_OFFSET_FETCH_VERSION_OF_IDS,
    FIRST_VERSION_OF_GROUP_ERRORS,
    FIRST_VERSION_OF_GROUPS,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from hmb.protocol.topics import NO_TOPIC_ID, TopicPartition

Group = OffsetFetchRequest.OffsetFetchRequestGroup
Wanted = Group.OffsetFetchRequestTopics
GroupResponse = OffsetFetchResponse.OffsetFetchResponseGroup
TopicResponse = GroupResponse.OffsetFetchResponseTopics
PartitionResponse = TopicResponse.OffsetFetchResponsePartitions
OldTopic = OffsetFetchResponse.OffsetFetchResponseTopic
OldPartition = OldTopic.OffsetFetchResponsePartition
Committed = Mapping[TopicPartition, CommittedOffset]
Held = Set[TopicPartition]  # partitions with offsets in a transaction that is not committed yet


def handle(request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    if context.version >= FIRST_VERSION_OF_GROUPS:
        check_repetitions(group.group_id for group in request.groups)
        return OffsetFetchResponse(groups=[_group(group, request.require_stable, context) for group in request.groups])
    wanted = None
    if request.topics is not None:
        wanted = [Wanted(name=each.name, partition_indexes=each.partition_indexes) for each in request.topics]
    group_response = _group(Group(group_id=request.group_id, topics=wanted), request.require_stable, context)
    if group_response.error_code and context.version < FIRST_VERSION_OF_GROUP_ERRORS:
        group_response.topics = [_failed(each, group_response.error_code) for each in wanted or ()]
    return OffsetFetchResponse(
        error_code=group_response.error_code,
        topics=[
            OldTopic(name=topic.name, partitions=[OldPartition(**vars(each)) for each in topic.partitions])
            for topic in group_response.topics
        ],
    )


def _group(group: Group, stable: bool, context: RequestContext) -> GroupResponse:
    group_response = GroupResponse(group_id=group.group_id)
    groups = context.broker.groups
    # Read the pending offsets (of open transactions) before the committed offsets. In the opposite order, if a
    # transaction commits between the two reads, neither result would contain its offsets. The client would then get
    # outdated offsets.
    held = groups.offsets.pending(group.group_id) if stable else set[TopicPartition]()
    try:
        if context.version == 0:
            groups.make_topic()  # A client of version 0 has not sent FindCoordinator, which creates the topic.
        if group.topics is None:
            found = groups.offsets.fetch(group.group_id, None, group.member_id, group.member_epoch)
            group_response.topics = _all(found, held, context)
        else:
            named = [(each, _name(each, context)) for each in group.topics]
            wanted = [
                TopicPartition(name, i) for each, name in named if name is not None for i in each.partition_indexes
            ]
            committed = groups.offsets.fetch(group.group_id, wanted, group.member_id, group.member_epoch)
            group_response.topics = [_topic(each, name, committed, held, context) for each, name in named]
    except KafkaError as error:
        group_response.error_code = error.code
    return group_response


def _name(wanted: Wanted, context: RequestContext) -> str | None:
    """Return the name of a requested topic. Return None for a topic id that does not exist."""
    if context.version < FIRST_OFFSET_FETCH_VERSION_OF_IDS:
        return wanted.name
    try:
        return context.broker.topics.find(None, wanted.topic_id).name
    except KafkaError:
        return None


def _topic(
    wanted: Wanted, name: str | None, committed: Committed, held: Held, context: RequestContext
) -> TopicResponse:
    if name is None:
        return _failed(wanted, ErrorCode.UNKNOWN_TOPIC_ID)
    topic_response, topic_id = TopicResponse(name=wanted.name, topic_id=wanted.topic_id), _topic_id(name, context)
    for index in wanted.partition_indexes:
        partition = TopicPartition(name, index)
        found = committed.get(partition)
        if partition in held:
            topic_response.partitions.append(_nothing(index, ErrorCode.UNSTABLE_OFFSET_COMMIT))
        elif found is not None and _is_of(found, topic_id):
            topic_response.partitions.append(_partition(index, found))
        else:
            code = ErrorCode.NONE if context.version else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            topic_response.partitions.append(_nothing(index, code))
    return topic_response


def _all(committed: Committed, held: Held, context: RequestContext) -> list[TopicResponse]:
    topics: dict[str, TopicResponse] = {}
    for (name, index), found in committed.items():
        topic_id = _topic_id(name, context)
        if _is_of(found, topic_id):
            topic_response = topics.setdefault(name, TopicResponse(name=name, topic_id=topic_id))
            is_held = TopicPartition(name, index) in held
            unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
            topic_response.partitions.append(_nothing(index, unstable) if is_held else _partition(index, found))
    return list(topics.values())


def _topic_id(name: str, context: RequestContext) -> UUID:
    topic = context.broker.topics.get(name)
    return NO_TOPIC_ID if topic is None else topic.id


def _is_of(found: CommittedOffset, topic_id: UUID) -> bool:
    """Return whether the offset was committed for the topic with this id, and not for an older topic of the same name.

    If the topic's id or the id stored with the offset is unknown, return True.
    """
    return found.topic_id == topic_id or NO_TOPIC_ID in (found.topic_id, topic_id)


def _partition(index: int, found: CommittedOffset) -> PartitionResponse:
    return PartitionResponse(
        partition_index=index,
        committed_offset=found.offset,
        committed_leader_epoch=found.leader_epoch,
        metadata=found.metadata,
    )


def _nothing(index: int, error_code: int) -> PartitionResponse:
    return PartitionResponse(partition_index=index, committed_offset=NO_OFFSET, error_code=error_code)


def _failed(wanted: Wanted, error_code: int) -> TopicResponse:
    partitions = [_nothing(index, error_code) for index in wanted.partition_indexes]
    return TopicResponse(name=wanted.name, topic_id=wanted.topic_id, partitions=partitions)
