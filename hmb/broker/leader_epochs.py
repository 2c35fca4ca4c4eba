"""Checks of the leader epochs in requests: a client whose view of a partition is out of date gets an error (KIP-320).

A client that knows a leader epoch sends it. The broker compares it with the epoch of the log, and refuses the request
if they differ, so that the client looks for the leader again. A follower also sends the epoch of its last record. The
broker then finds the offset from which the two logs differ (KIP-595).

The only broker of a cluster never changes a leader epoch. Several epochs exist only in a data directory that another
broker wrote, so a first reading can skip this module.
"""

from __future__ import annotations

from hmb.broker.fetch_sessions import FetchedPartition
from hmb.protocol.enums import NO_LEADER_EPOCH
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.fetch import FetchResponse
from hmb.storage.log import Log

PartitionData = FetchResponse.FetchableTopicResponse.PartitionData


def check_epoch(known: int, log: Log) -> None:
    """Raise FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH if the client knows another leader epoch than the log."""
    if known != NO_LEADER_EPOCH and known != log.leader_epoch:
        older = known < log.leader_epoch
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH)


def set_divergence(partition: FetchedPartition, log: Log, data: PartitionData) -> bool:
    """Return whether the client's log and this log diverge (KIP-595). If so, write the point of divergence into `data`.

    A response with a divergence contains no records. Raises OFFSET_OUT_OF_RANGE.
    """
    end = log.epochs.end_of(partition.last_fetched_epoch, log.log_start_offset, log.log_end_offset)
    if end is None or partition.fetch_offset < log.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if end.epoch == partition.last_fetched_epoch and end.end_offset >= partition.fetch_offset:
        return False
    data.diverging_epoch = PartitionData.EpochEndOffset(epoch=end.epoch, end_offset=end.end_offset)
    data.high_watermark, data.last_stable_offset = log.high_watermark, log.last_stable_offset
    data.log_start_offset = log.log_start_offset
    return True
