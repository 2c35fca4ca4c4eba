"""OffsetCommit: store the offsets up to which a group has processed its partitions.

Versions: 0-10; versions 8 and later use the flexible encoding (KIP-482).
Permissions: READ on the group; READ on each topic.
Behavior: the broker stores each offset as a record in `__consumer_offsets`. Each partition has its own error code.
    - *Disk.* If `log.flush.acks.all` is true, the broker responds after the records are on disk. Otherwise it
      responds after the append.
    - *Members.* A member sends its member id and its generation. The broker refuses a commit of a former member.
    - *Other clients.* A client that is not a member sends no generation. It can commit offsets only while the group
      has no members. If the group does not exist, the commit creates it.
    - *Metadata.* With each offset, a client can store a text, which OffsetFetch returns unchanged. The setting
      `offset.metadata.max.bytes` limits the length of the text.
Version notes: for version 0, Kafka stored the offsets in ZooKeeper. HMB stores them like all others. A request of
    version 0 contains no member id and no generation, so it can commit offsets only while the group has no members.
    Versions 5 and later contain no retention time. Instead, `offsets.retention.minutes` determines how long the
    broker keeps the offsets (KIP-211). If a request with a generation names an unknown group, the error is
    ILLEGAL_GENERATION in versions below 9, and GROUP_ID_NOT_FOUND in later versions.
Left out: `offsets.commit.timeout.ms`, the time for which a Kafka broker waits for its replicas. HMB has no
    replicas, so a client sees no difference.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.deferred import Deferred
from hmb.broker.shared_responses import committed, merged, metadata_length
from hmb.broker.topics.topic import Topic
from hmb.coordinator.group import Commit
from hmb.coordinator.journal.partition import QueuedRecords
from hmb.coordinator.offsets import NO_EXPIRY, CommittedOffset
from hmb.protocol.enums import INT64_MAX
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.offset_commit import (
    FIRST_OFFSET_COMMIT_VERSION_OF_IDS,
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from hmb.protocol.topics import TopicPartition

Wanted = OffsetCommitRequest.OffsetCommitRequestTopic
TopicResponse = OffsetCommitResponse.OffsetCommitResponseTopic
PartitionResponse = TopicResponse.OffsetCommitResponsePartition
Offsets = dict[TopicPartition, CommittedOffset]
# In a request, the timestamp -1 (NOW) means the current time. The retention time -1 (BROKERS_RETENTION) means the
# retention time in the broker's settings.
NOW = BROKERS_RETENTION = -1


def handle(
    request: OffsetCommitRequest, context: RequestContext
) -> OffsetCommitResponse | Deferred[OffsetCommitResponse]:
    offsets: Offsets = {}
    refused: list[TopicResponse] = []
    accepted: list[TopicResponse] = []
    now, longest = context.broker.clock.now_ms(), context.broker.config.offset_metadata_max
    for wanted in request.topics:
        topic, error = _find(wanted, context)
        bad: list[PartitionResponse] = []
        good: list[PartitionResponse] = []
        for partition in wanted.partitions:
            index = partition.partition_index
            if topic is None or index not in topic.partitions:
                bad.append(PartitionResponse(partition_index=index, error_code=error))
            elif metadata_length(partition.committed_metadata) > longest:
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                good.append(PartitionResponse(partition_index=index, error_code=code))
            else:
                good.append(PartitionResponse(partition_index=index))
                offsets[TopicPartition(topic.name, index)] = _committed(partition, request, topic, now)
        if bad or topic is None:
            refused.append(TopicResponse(name=wanted.name, topic_id=wanted.topic_id, partitions=bad))
        if good:
            accepted.append(TopicResponse(name=wanted.name, topic_id=wanted.topic_id, partitions=good))
    response = OffsetCommitResponse(topics=merged(refused, accepted))
    return _commit(request, offsets, accepted, response, context) if accepted else response


def _find(wanted: Wanted, context: RequestContext) -> tuple[Topic | None, ErrorCode]:
    """Return the requested topic or None, and one error code for all partitions that do not exist."""
    topics = context.broker.topics
    if context.version < FIRST_OFFSET_COMMIT_VERSION_OF_IDS:
        return topics.get(wanted.name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        return topics.find(None, wanted.topic_id), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    except KafkaError as error:
        return None, error.code


def _committed(
    partition: Wanted.OffsetCommitRequestPartition, request: OffsetCommitRequest, topic: Topic, now: int
) -> CommittedOffset:
    timestamp, retention = partition.commit_timestamp, request.retention_time_ms
    return CommittedOffset(
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
        now if timestamp == NOW else timestamp,
        NO_EXPIRY if retention == BROKERS_RETENTION else min(now + retention, INT64_MAX),
        topic.id,
    )


def _commit(
    request: OffsetCommitRequest,
    offsets: Offsets,
    accepted: list[TopicResponse],
    response: OffsetCommitResponse,
    context: RequestContext,
) -> OffsetCommitResponse | Deferred[OffsetCommitResponse]:
    """Commit all offsets in one write.

    If the group refuses the commit, every partition in `accepted` gets the group's error.
    """
    groups = context.broker.groups

    def begin() -> QueuedRecords:
        if context.version == 0:
            groups.make_topic()  # A client of version 0 has not sent FindCoordinator, which creates the topic.
        generation, instance_id = request.generation_id_or_member_epoch, request.group_instance_id
        commit = Commit(request.member_id, generation, instance_id, context.version, offsets)
        return groups.offsets.begin_commit(request.group_id, commit)

    def fail(error: KafkaError) -> None:
        code = error.code
        if code is ErrorCode.GROUP_ID_NOT_FOUND and context.version < OffsetCommitRequest.FIRST_VERSION_OF_EPOCHS:
            code = ErrorCode.ILLEGAL_GENERATION
        for topic_response in accepted:
            for partition in topic_response.partitions:
                partition.error_code = code

    return committed(groups, begin, response, fail)
