"""Checks the fields of ConsumerGroupHeartbeat requests, and converts partitions for requests and responses."""

from __future__ import annotations

from hmb.coordinator.consumer.assignors import ASSIGNORS
from hmb.coordinator.consumer.member import ConsumerMember
from hmb.coordinator.consumer.topic_regex import topic_regex
from hmb.coordinator.modern.heartbeat import (
    INVALID_EPOCH,
    NO_INSTANCE_ID,
    NO_REBALANCE_TIMEOUT,
    check_problems,
    empty_fields,
)
from hmb.coordinator.modern.partitions import partitions_of, topics_of
from hmb.protocol.enums import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from hmb.protocol.topics import PartitionId

Assignment = ConsumerGroupHeartbeatResponse.Assignment


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int) -> None:
    """Check the fields of a heartbeat. Raises INVALID_REQUEST, UNSUPPORTED_ASSIGNOR, INVALID_REGULAR_EXPRESSION."""
    epoch = request.member_epoch
    has_joined = epoch > 0 or epoch == LEAVE_EPOCH
    needs_id = has_joined or version >= ConsumerGroupHeartbeatRequest.FIRST_VERSION_OF_OWN_IDS
    problems = {
        **empty_fields(request, request.instance_id, needs_member_id=needs_id),
        NO_REBALANCE_TIMEOUT: epoch == JOIN_EPOCH and request.rebalance_timeout_ms == -1,
        "TopicPartitions must be empty when (re-)joining.": epoch == JOIN_EPOCH and request.topic_partitions != [],
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.": (
            epoch == JOIN_EPOCH and request.subscribed_topic_names is None and request.subscribed_topic_regex is None
        ),
        NO_INSTANCE_ID: epoch == STATIC_LEAVE_EPOCH and request.instance_id is None,
        INVALID_EPOCH: epoch < STATIC_LEAVE_EPOCH,
    }
    check_problems(problems)
    if request.server_assignor is not None and request.server_assignor not in ASSIGNORS:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(ASSIGNORS)}.",
        )

    if request.subscribed_topic_regex:
        topic_regex(request.subscribed_topic_regex)


def check_instance(known_id: str, request: ConsumerGroupHeartbeatRequest) -> None:
    """Raise FENCED_INSTANCE_ID if another member (`known_id`) already uses the instance id in the request."""
    if known_id != request.member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {request.member_id} with instance id {request.instance_id} was fenced by member "
            f"{known_id}.",
        )


def owned_by(request: ConsumerGroupHeartbeatRequest) -> frozenset[PartitionId] | None:
    """Return the partitions that the member owns according to its heartbeat.

    None means that the heartbeat does not list partitions, because they are the same as in the previous heartbeat.
    """
    return None if request.topic_partitions is None else partitions_of(request.topic_partitions)


def is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether a heartbeat contains all fields. If it does, the response contains the member's assignment.

    A heartbeat usually contains only the fields that have changed. After an error, a client sends all fields again.
    """
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != -1 and subscribes and request.topic_partitions is not None


def assignment_of(member: ConsumerMember) -> Assignment:
    """Return the assigned partitions of a member as a field of the heartbeat response."""
    return Assignment(topic_partitions=topics_of(Assignment.TopicPartitions, member.assigned))
