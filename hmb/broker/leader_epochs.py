"""Checks of the leader epochs in requests. A client that knows an outdated leader epoch gets an error (KIP-320).

In a cluster of several brokers, a partition gets a new leader epoch when its leader changes. A client sends the leader
epoch that it knows. If this epoch differs from the epoch of the log, the broker refuses the request. The client then
asks for the current leader.

A client can also send the epoch of the last record that it has fetched. With this epoch, the broker finds out
whether the client's records differ from the broker's log. If they differ, the response contains the offset to
which the client must go back (KIP-595).

HMB is a cluster of one broker. A partition never gets a new leader, so its leader epoch never changes. A log contains
several epochs only if another broker wrote the data directory. You can skip this module in a first reading.
"""

from __future__ import annotations

from hmb.broker.fetch_sessions import CachedPartition
from hmb.protocol.enums import NO_LEADER_EPOCH
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.fetch import FetchResponse
from hmb.storage.log import Log

PartitionData = FetchResponse.FetchableTopicResponse.PartitionData


def check_epoch(known: int, log: Log) -> None:
    """Compare the client's leader epoch `known` with the log's leader epoch.

    Raises FENCED_LEADER_EPOCH if the client's epoch is older, and UNKNOWN_LEADER_EPOCH if it is newer.
    """
    if known != NO_LEADER_EPOCH and known != log.leader_epoch:
        older = known < log.leader_epoch
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH)


def set_divergence(partition: CachedPartition, log: Log, data: PartitionData) -> bool:
    """Return whether the client's records differ from this log (KIP-595).

    The function compares the leader epoch of the client's last record with the log's epochs. If the records differ,
    the client must go back to an earlier offset. The function writes the earlier offset, and the epoch that ends at
    this offset, into the response `data`. The response then has no records.

    Raises OFFSET_OUT_OF_RANGE if the client's fetch offset is below the log start offset, or if the client's epoch
    is newer than all epochs of the log.
    """
    end = log.epochs.end_of(partition.last_fetched_epoch, log.log_start_offset, log.log_end_offset)
    if end is None or partition.fetch_offset < log.log_start_offset:
        why = f"the log starts at offset {log.log_start_offset}, after the offset or the epoch of the request"
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, why)
    if end.epoch == partition.last_fetched_epoch and end.end_offset >= partition.fetch_offset:
        return False
    data.diverging_epoch = PartitionData.EpochEndOffset(epoch=end.epoch, end_offset=end.end_offset)
    data.high_watermark, data.last_stable_offset = log.high_watermark, log.last_stable_offset
    data.log_start_offset = log.log_start_offset
    return True
