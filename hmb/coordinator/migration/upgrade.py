"""The upgrade: a classic group with members becomes a KIP-848 group.

The members of the classic group become members of the KIP-848 group. The generation becomes the group epoch and the
epoch of each member. The assignment becomes the target assignment, so the upgrade itself moves no partition.

An upgrade starts when a client with the KIP-848 protocol joins. After the upgrade, this client becomes a member. A new
member starts a rebalance. But if the client is a static member that has restarted, it gets its old partitions back, so
no rebalance is necessary.

For example, a classic group is in generation 7, and member A owns partition 0. After the upgrade to a KIP-848 group,
the group epoch, the assignment epoch and the epoch of A are 7. The target assignment of A and its current assignment
both contain only partition 0.

The coordinator can upgrade a group only if it can read the data of the members. The protocol type must be
"consumer", and the subscriptions and assignments must have the format of Kafka's consumers. If the application
uses its own assignor, the assignments can also contain `user_data`. A KIP-848 group cannot store this field, so
the coordinator then rejects the upgrade.

Source: Kafka's `GroupMetadataManager.validateOnlineUpgrade` and `ConsumerGroup.fromClassicGroup`.
"""

from __future__ import annotations

from hmb.coordinator.classic.group import ClassicGroup
from hmb.coordinator.classic.members import ClassicMember
from hmb.coordinator.cluster_topics import ClusterTopics, metadata_hash
from hmb.coordinator.consumer.classic_metadata import ClassicMetadata
from hmb.coordinator.consumer.group import ConsumerGroup
from hmb.coordinator.consumer.member import ConsumerMember
from hmb.coordinator.consumer.settings import ConsumerGroupSettings
from hmb.coordinator.migration.partitions import ids_of
from hmb.protocol.consumer_protocol import CONSUMER, ConsumerProtocolAssignment, ConsumerProtocolSubscription
from hmb.protocol.errors import ErrorCode, KafkaError, ProtocolError
from hmb.protocol.topics import PartitionId

CUSTOM_ASSIGNOR = (
    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor "
    "before re-attempting the upgrade."
)


def check_upgrade(classic: ClassicGroup, settings: ConsumerGroupSettings) -> None:
    """Check that the classic group may become a KIP-848 group. Raises GROUP_ID_NOT_FOUND."""
    problems = {
        "online upgrade is disabled.": not settings.migration_policy.allows_upgrade,
        "the group does not use the consumer embedded protocol.": classic.protocol_type != CONSUMER,
        "the group size exceeds the consumer group maximum size.": len(classic.state.members) > settings.max_size,
    }
    for problem, is_there in problems.items():
        if is_there:
            raise _refused(classic, problem)


def move_members(classic: ClassicGroup, group: ConsumerGroup, topics: ClusterTopics, now: int) -> None:
    """Copy the members, the generation and the assignment of a classic group to a new KIP-848 group.

    The classic group does not change. Raises GROUP_ID_NOT_FOUND if the subscription or the assignment of a member is
    not in the format of Kafka's consumers.
    """
    try:
        members = [_converted(member, classic, topics) for member in classic.state.members]
    except ProtocolError as error:
        raise _refused(classic, "the embedded consumer protocol is malformed.") from error
    state, generation = group.state, classic.state.generation
    for member in members:
        state.put_metadata(member)
    state.set_epoch(generation, metadata_hash(group.subscriptions.topics()))
    for member in members:
        state.set_target(member.member_id, frozenset(member.assigned))
    state.set_assignment_epoch(generation, timestamp=0)
    for member in members:
        state.put_assignment(member)
        group.deadlines.start_session(member.member_id, member.session_timeout(0), now)
    state.replace_classic(classic.record_tombstones())
    text = f"upgrade from the classic protocol in generation {generation}; {len(members)} members stay"
    group.event_texts.append(text)


def dissolve(classic: ClassicGroup) -> None:
    """End a classic group that a KIP-848 group has replaced.

    All waiting requests get the error REBALANCE_IN_PROGRESS. The members that have sent these requests then join again.
    """
    for member in classic.state.members:
        classic.state.refuse_waiting_calls(member, ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
    classic.unload()


def _converted(member: ClassicMember, classic: ClassicGroup, topics: ClusterTopics) -> ConsumerMember:
    subscription, _ = ConsumerProtocolSubscription.parse(_metadata(member, classic.state.protocol))
    ConsumerProtocolSubscription.parse(member.protocols[0][1])  # SyncGroup needs this metadata, too, so check it now.
    generation = classic.state.generation
    return ConsumerMember(
        member.member_id,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout,
        topics=frozenset(subscription.topics),
        epoch=generation,
        previous_epoch=generation,
        assigned=dict.fromkeys(_assigned(member, classic, topics), generation),
        classic=ClassicMetadata(member.session_timeout, member.protocols),
    )


def _metadata(member: ClassicMember, protocol: str | None) -> bytes:
    """Return the encoded subscription of a member for the group's protocol (assignment strategy).

    During a rebalance, `protocol` can be None, or the member may no longer support this protocol. The function then
    returns the subscription for the member's preferred protocol. It contains the same topics, because a consumer
    subscribes to the same topics with each protocol.
    """
    supported = protocol is not None and member.supports(protocol)
    return member.metadata(protocol) if protocol is not None and supported else member.protocols[0][1]


def _assigned(member: ClassicMember, classic: ClassicGroup, topics: ClusterTopics) -> frozenset[PartitionId]:
    """Return the partitions of a member. A member that has never sent SyncGroup has an empty assignment."""
    if not member.assignment:
        return frozenset()
    assignment, _ = ConsumerProtocolAssignment.parse(member.assignment)
    if assignment.user_data:
        raise _refused(classic, CUSTOM_ASSIGNOR)
    return ids_of(assignment.assigned_partitions, topics)


def _refused(classic: ClassicGroup, problem: str) -> KafkaError:
    why = f"Cannot upgrade classic group {classic.group_id} to consumer group because {problem}"
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, why)
