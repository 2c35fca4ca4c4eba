"""The downgrade: a KIP-848 group becomes a classic group when all its remaining members use the classic protocol.

A downgrade happens in these two cases, if the setting `group.consumer.migration.policy` allows it:
- Members are removed, because they leave or because a deadline has passed. All remaining members use the classic
  protocol.
- A static member of the KIP-848 protocol restarts with the classic protocol, and all other members use the classic
  protocol.

In a downgrade, the epoch of the KIP-848 group becomes the generation of the classic group. The target assignment of
each member becomes the assignment of this member in the classic group.

After a downgrade, the classic group sometimes has to start a rebalance:
- If members were removed, nobody owns their partitions any more. The classic group therefore starts a rebalance
  immediately.
- If a static member has restarted with the classic protocol, it keeps its target assignment: the partitions
  that it should own. A rebalance starts only if some member has not reached its target assignment yet.

For example, the KIP-848 group "readers" is in epoch 8. Members A and B use the classic protocol, and C, the last member
with the KIP-848 protocol, leaves. "readers" becomes a classic group in generation 8 and in the state
PreparingRebalance. A and B each send a heartbeat with generation 8, and the response contains REBALANCE_IN_PROGRESS.
Both join again, and A becomes the leader of generation 9.

When the downgrade happens, a member can still be in an older epoch than its KIP-848 group. The group's epoch becomes
the generation of the classic group, so the member's next heartbeat contains a generation that is too old. The response
contains the error ILLEGAL_GENERATION. The member then gives up all its partitions, and joins again.

Source: Kafka's `GroupMetadataManager.convertToClassicGroup` and `ClassicGroup.fromConsumerGroup`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from hmb.coordinator.classic.group import ClassicGroup
from hmb.coordinator.classic.members import ClassicMember, ClassicMembers
from hmb.coordinator.classic.settings import GroupSettings
from hmb.coordinator.cluster_topics import ClusterTopics
from hmb.coordinator.consumer.classic_metadata import ClassicMetadata
from hmb.coordinator.consumer.group import ConsumerGroup
from hmb.coordinator.consumer.member import ConsumerMember
from hmb.coordinator.migration.partitions import encode_assignment
from hmb.protocol.errors import ErrorCode, KafkaError, ProtocolError


def may_downgrade(group: ConsumerGroup, leaving: Collection[str], max_size: int) -> bool:
    """Return whether a KIP-848 group is allowed to become a classic group after some members have left.

    `leaving` contains the ids of the members that leave. `max_size` is the largest number of members that a classic
    group can have.
    """
    staying = [member for id, member in group.state.members.items() if id not in leaving]
    return (
        bool(staying)
        and all(member.classic is not None for member in staying)
        and group.settings.migration_policy.allows_downgrade
        and len(staying) <= max_size
    )


def classic_group_of(
    group: ConsumerGroup,
    leaving: Collection[str],
    topics: ClusterTopics,
    settings: GroupSettings,
    clock: Callable[[], int],
    now: int,
) -> ClassicGroup:
    """Return the classic group that replaces a KIP-848 group.

    `leaving` contains the ids of the members that will not be in the classic group. All other members must use the
    classic protocol. The function does not change the KIP-848 group. Raises GROUP_ID_NOT_FOUND if a member's metadata
    is malformed.
    """
    state, members = group.state, ClassicMembers()
    try:
        for member_id, member in state.members.items():
            if member_id not in leaving and member.classic is not None:
                members.add(_converted(member, member.classic, group, topics))
    except ProtocolError as error:
        why = f"Cannot downgrade the classic group {group.group_id}: {error}."
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, why) from error
    classic = ClassicGroup(group.group_id, settings, clock)
    classic.state.continue_as_stable(members, state.epoch)
    classic.state.replaced = state.all_tombstones()
    classic.state.queue_write({member.member_id: member.assignment for member in members})
    text = f"downgrade to the classic protocol in generation {state.epoch}; {len(members)} members stay"
    classic.event_texts.append(text)
    classic.resume(now)
    if leaving or not all(member.is_reconciled_to(state.epoch) for member in state.members.values()):
        classic.start_rebalance("the group has changed from the KIP-848 protocol to the classic protocol", now)
    return classic


def _converted(
    member: ConsumerMember, classic: ClassicMetadata, group: ConsumerGroup, topics: ClusterTopics
) -> ClassicMember:
    _, version = classic.subscription()
    target = group.state.targets.get(member.member_id, frozenset())
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        classic.session_timeout,
        member.rebalance_timeout,
        classic.protocols,
        assignment=encode_assignment(target, version, topics),
    )
