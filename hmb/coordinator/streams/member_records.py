"""Converts the members of a streams group to values of records, and back.

The record of a member's current tasks contains one list of tasks for each subtopology. For example, the member
received task 0_0 (subtopology 0, partition 0) in epoch 4, and task 0_1 in epoch 5. Both are active tasks. The
record contains one `TaskIds` object for both, with the partitions [0, 1] and the epochs [4, 5].

Source: KIP-1071; Kafka's `StreamsCoordinatorRecordHelpers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hmb.coordinator.streams.member import QueryAddress, StreamsMember
from hmb.coordinator.streams.records import (
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
)
from hmb.coordinator.streams.states import StreamsMemberState
from hmb.coordinator.streams.tasks import OwnedTasks, TaskId, Tasks, numbers_by_subtopology, task_ids, tasks_in
from hmb.protocol.messages.streams_group_heartbeat import Endpoint, KeyValue

CurrentTasks = StreamsGroupCurrentMemberAssignmentValue.TaskIds


def metadata_value(member: StreamsMember) -> StreamsGroupMemberMetadataValue:
    """Return the value of the record that contains the client, the process and the address of a member."""
    return StreamsGroupMemberMetadataValue(
        instance_id=None,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=endpoint_of(member),
        client_tags=tags_of(member),
    )


def endpoint_of(member: StreamsMember) -> Endpoint | None:
    """Return the address at which a member answers queries, or None if the member has no address."""
    return None if member.endpoint is None else Endpoint(host=member.endpoint.host, port=member.endpoint.port)


def tags_of(member: StreamsMember) -> list[KeyValue]:
    """Return the member's tags as a field of a record or of a message."""
    return [KeyValue(key=key, value=value) for key, value in member.tags]


def with_metadata(member: StreamsMember, value: StreamsGroupMemberMetadataValue) -> StreamsMember:
    """Return a copy of the member with the client, the process and the address from a record."""
    endpoint = value.user_endpoint
    return replace(
        member,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        endpoint=None if endpoint is None else QueryAddress(endpoint.host, endpoint.port),
        tags=tuple((tag.key, tag.value) for tag in value.client_tags),
    )


def current_value(member: StreamsMember) -> StreamsGroupCurrentMemberAssignmentValue:
    """Return the value of the record that contains the epoch and the tasks of a member."""
    return StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        active_tasks=_active(member.assigned),
        standby_tasks=_standby(member.assigned),
        active_tasks_pending_revocation=_active(member.revoking),
        standby_tasks_pending_revocation=_standby(member.revoking),
    )


def with_current(member: StreamsMember, value: StreamsGroupCurrentMemberAssignmentValue) -> StreamsMember:
    """Return a copy of the member with the epoch and the tasks from a record.

    Raises ValueError if the record contains an unknown member state. A newer broker can have written such a record.
    """
    revoking = value.active_tasks_pending_revocation, value.standby_tasks_pending_revocation
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=StreamsMemberState(value.state),
        assigned=_owned(value.active_tasks, value.standby_tasks, value.member_epoch),
        revoking=_owned(*revoking, value.member_epoch),
    )


def target_value(target: Tasks) -> StreamsGroupTargetAssignmentMemberValue:
    """Return the value of the record that contains the target tasks of a member."""
    return StreamsGroupTargetAssignmentMemberValue(
        active_tasks=task_ids(target.active), standby_tasks=task_ids(target.standby)
    )


def target_of(value: StreamsGroupTargetAssignmentMemberValue) -> Tasks:
    """Return the target tasks from the value of a record."""
    return Tasks(tasks_in(value.active_tasks), tasks_in(value.standby_tasks))


def _active(owned: OwnedTasks) -> list[CurrentTasks]:
    return [
        CurrentTasks(
            subtopology_id=subtopology,
            partitions=numbers,
            assignment_epochs=[owned.active[TaskId(subtopology, number)] for number in numbers],
        )
        for subtopology, numbers in numbers_by_subtopology(owned.active).items()
    ]


def _standby(owned: OwnedTasks) -> list[CurrentTasks]:
    return [
        CurrentTasks(subtopology_id=subtopology, partitions=numbers, assignment_epochs=[])
        for subtopology, numbers in numbers_by_subtopology(owned.standby).items()
    ]


def _owned(active: Iterable[CurrentTasks], standby: Iterable[CurrentTasks], member_epoch: int) -> OwnedTasks:
    """Return the tasks from a record, with the epoch in which the member received each active task.

    These epochs are optional in a record. If they are missing, each active task gets the epoch `member_epoch`.
    """
    epochs: dict[TaskId, int] = {}
    for each in active:
        known = each.assignment_epochs or [member_epoch] * len(each.partitions)
        numbered = zip(each.partitions, known, strict=True)
        epochs.update((TaskId(each.subtopology_id, number), epoch) for number, epoch in numbered)
    return OwnedTasks(epochs, tasks_in(standby))
