"""Reads the groups and transactions of a cluster, with requests to the brokers that coordinate them."""

from __future__ import annotations

from collections.abc import Mapping

from hmb.client.admin import group_offsets, groups
from hmb.client.admin.brokers import Brokers, raised
from hmb.client.admin.groups import GroupDescription, GroupListing
from hmb.client.coordinator import find_coordinator
from hmb.monitoring.sampling import Sampler
from hmb.monitoring.state import GroupInfo, GroupMemberInfo, PositionInfo, TransactionInfo
from hmb.protocol.enums import CoordinatorType, GroupType
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from hmb.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from hmb.protocol.topics import TopicPartition

Ends = Mapping[TopicPartition, int]  # the high watermark of each partition


def read_groups(brokers: Brokers, ends: Ends, sampler: Sampler | None, missing: dict[str, str]) -> list[GroupInfo]:
    """Return all groups. If a group cannot be read, note the error in `missing`. Raises KafkaError."""
    found = []
    for listed in groups.list_groups(brokers):
        try:
            found.append(_group(brokers, listed, ends, sampler))
        except KafkaError as error:
            missing[f"group {listed.group_id}"] = error.message
    return found


def _group(brokers: Brokers, listed: GroupListing, ends: Ends, sampler: Sampler | None) -> GroupInfo:
    described = raised(groups.describe_groups(brokers, [listed.group_id])[listed.group_id])
    return GroupInfo(
        group_id=described.group_id,
        type=described.type,
        protocol_type=described.protocol_type,
        state=described.state,
        members=_members(described),
        positions=[] if described.type == GroupType.SHARE else _positions(brokers, listed.group_id, ends),
        lags=[] if sampler is None else sampler.lags(listed.group_id),
    )


def _members(group: GroupDescription) -> list[GroupMemberInfo]:
    return [
        GroupMemberInfo(
            *(member.member_id, member.group_instance_id, member.client_id, member.host),
            last_heartbeat=None,
            partitions=[str(partition) for partition in member.assignment],
        )
        for member in group.members
    ]


def _positions(brokers: Brokers, group: str, ends: Ends) -> list[PositionInfo]:
    positions = []
    for partition, committed in sorted(group_offsets.list_group_offsets(brokers, group).items()):
        end = ends.get(partition, -1)
        lag = None if end < 0 else max(0, end - committed.offset)
        positions.append(PositionInfo(*partition, committed.offset, lag, lag_ms=0 if lag == 0 else None))
    return positions


def read_transactions(brokers: Brokers) -> list[TransactionInfo]:
    """Return the transactions of all brokers. Raises KafkaError, for example if Kafka is older than 3.0."""
    found = []
    for node in brokers.nodes():
        listed: ListTransactionsResponse = brokers.connection(node).send(ListTransactionsRequest())
        names = [each.transactional_id for each in listed.transaction_states]
        for name in names:
            found += _transactions(brokers, name)
    return sorted(found, key=lambda it: it.transactional_id)


def _transactions(brokers: Brokers, name: str) -> list[TransactionInfo]:
    coordinator = brokers.connection(find_coordinator(brokers.cluster, CoordinatorType.TRANSACTION, name))
    response: DescribeTransactionsResponse = coordinator.send(DescribeTransactionsRequest(transactional_ids=[name]))
    return [
        TransactionInfo(
            transactional_id=each.transactional_id,
            producer_id=each.producer_id,
            epoch=each.producer_epoch,
            state=each.transaction_state,
            started=None if each.transaction_start_time_ms < 0 else each.transaction_start_time_ms,
            timeout_ms=each.transaction_timeout_ms,
            partitions=[f"{topic.topic}-{number}" for topic in each.topics for number in sorted(topic.partitions)],
        )
        for each in response.transaction_states
        if not each.error_code  # The coordinator has forgotten the id since the list was made.
    ]
