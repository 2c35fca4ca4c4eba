"""Acknowledges records for a member of a share group. ShareFetch and ShareAcknowledge both use this module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from hmb.broker.context import BrokerContext, RequestContext
from hmb.broker.errors import outcome_of
from hmb.broker.share.sessions import SessionId, ShareSession
from hmb.coordinator.journal.partition import QueuedRecords
from hmb.coordinator.share.acknowledgement import Acknowledgement, check_acknowledgements
from hmb.coordinator.share.coordinator import SharePartitionId
from hmb.coordinator.share.partitions import SharePartition
from hmb.protocol.enums import AcknowledgeType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import PartitionId

Acknowledgements = Mapping[PartitionId, Sequence[Acknowledgement]]
Errors = dict[PartitionId, KafkaError | None]  # the error of each partition, or None


def acknowledgements_in(topics: Iterable[Any]) -> dict[PartitionId, list[Acknowledgement]]:
    """Return the acknowledgements in the topics of a ShareFetch or ShareAcknowledge request, by partition."""
    return {
        PartitionId(topic.topic_id, partition.partition_index): [
            Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types)
            for batch in partition.acknowledgement_batches
        ]
        for topic in topics
        for partition in topic.partitions
        if partition.acknowledgement_batches
    }


def find_share_partition(broker: BrokerContext, group_id: str, partition: PartitionId) -> SharePartition:
    """Return a share-partition, and load its state if necessary.

    Raises UNKNOWN_TOPIC_ID if the topic does not exist, and UNKNOWN_TOPIC_OR_PARTITION if the topic has no such
    partition. Also raises the errors of the share coordinator, which stores the state.
    """
    log = broker.topics.find(None, partition.topic_id).log(partition.partition)
    return broker.share.partitions.get(SharePartitionId(group_id, partition), log)


def acknowledge(broker: BrokerContext, id: SessionId, all: Acknowledgements, *, renews: bool) -> Errors:
    """Acknowledge records of several partitions, and wait until the changes are on disk."""
    errors: Errors = {}
    queued: list[tuple[PartitionId, SharePartition, QueuedRecords | None]] = []
    for partition, batches in all.items():
        errors[partition] = None
        try:
            _check_renewal(broker, id.group_id, batches)
            check_acknowledgements(batches, renews=renews)
            share_partition = find_share_partition(broker, id.group_id, partition)
            queued.append((partition, share_partition, share_partition.begin_acknowledge(id.member_id, batches)))
        except KafkaError as error:
            errors[partition] = error
    for partition, share_partition, change in queued:
        errors[partition] = outcome_of(partial(share_partition.finish, change))
    return errors


def _check_renewal(broker: BrokerContext, group_id: str, batches: Sequence[Acknowledgement]) -> None:
    renews = any(AcknowledgeType.RENEW in batch.types for batch in batches)
    if renews and not broker.share_settings(group_id).allows_renew:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "share.renew.acknowledge.enable is false")


def release(broker: BrokerContext, session: ShareSession) -> None:
    """Release all records that the member of a session has acquired, because the session has ended."""
    queued: list[tuple[SharePartition, QueuedRecords | None]] = []
    for partition in session.partitions:
        share_partition = broker.share.partitions.find(SharePartitionId(session.id.group_id, partition))
        if share_partition is not None and not share_partition.is_stale:
            queued.append((share_partition, share_partition.begin_release(session.id.member_id)))
    for share_partition, change in queued:
        share_partition.finish(change)


def release_at_end(context: RequestContext, session: ShareSession) -> None:
    """When this connection ends, close the session, and release the records that its member has acquired.

    If the connection ends because the broker is stopping, nothing has to be released. The broker does not store on
    disk which records are Acquired, so these records are Available again after the restart.
    """
    broker = context.broker

    def end() -> None:
        if broker.share_sessions.end(session) and not broker.stop.requested.is_set():
            outcome_of(partial(release, broker, session))

    context.client.at_end[session.id] = end
