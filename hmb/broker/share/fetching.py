"""Fetches records for a member of a share group.

A fetch goes through the partitions of the member's share session, and acquires records for the member. The
fetch stops when the member has as many records or bytes as it asked for. A record can be acquired if its state
is Available. If no partition has such a record, the fetch waits (broker/long_poll.py). The fetch continues when
a producer appends records to one of the logs, when a record becomes Available again, or when the broker stops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hmb.broker.context import RequestContext
from hmb.broker.errors import COORDINATOR_ERRORS
from hmb.broker.share.acknowledging import find_share_partition
from hmb.broker.share.batches import StoredBatches, read_batches
from hmb.broker.share.sessions import ShareSession
from hmb.coordinator.share.in_flight import Run
from hmb.coordinator.share.partitions import Acquisition, SharePartition
from hmb.protocol.enums import ShareAcquireMode
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from hmb.protocol.topics import PartitionId
from hmb.storage.watchers import Watchers

PartitionData = ShareFetchResponse.ShareFetchableTopicResponse.PartitionData
AcquiredRecords = PartitionData.AcquiredRecords


class ShareFetching:
    """One ShareFetch request. The method `collect` acquires records for the member that has sent the request.

    If `collect` acquires no record, the request waits in the broker (function `long_poll`). The waiting thread calls
    `collect` again when a record may have become available.
    """

    def __init__(self, request: ShareFetchRequest, session: ShareSession, context: RequestContext) -> None:
        self._request = request
        self._session = session
        self._context = context
        self._group_id, self._member = session.id
        self._records_left = request.max_records
        self._bytes_left = min(request.max_bytes, context.broker.config.fetch_max_bytes)
        self.watched: list[Watchers] = []
        self.responses: dict[PartitionId, PartitionData] = {}  # partitions with acquired records, or with an error

    @property
    def is_satisfied(self) -> bool:
        return bool(self.responses)

    def collect(self) -> None:
        """Acquire records from the partitions of the session, until the member has as many records as it asked for."""
        self.watched = []
        for partition in list(self._session.partitions):
            if self._records_left <= 0 or self._bytes_left <= 0:
                return
            try:
                share_partition = find_share_partition(self._context.broker, self._group_id, partition)
                self.watched += [share_partition.watchers, share_partition.log.watchers]
                data = self._acquire(partition, share_partition)
            except KafkaError as error:
                if error.code in COORDINATOR_ERRORS:  # The share coordinator still loads. The client asks again.
                    continue
                data = PartitionData(error_code=error.code, error_message=error.message)
            if data is not None:
                data.partition_index = partition.partition
                self.responses[partition] = data
                self._session.move_to_end(partition)

    def _acquire(self, partition: PartitionId, share_partition: SharePartition) -> PartitionData | None:
        committed = self._context.broker.share_settings(self._group_id).reads_committed
        log, most = share_partition.log, self._records_left

        def read(offset: int) -> StoredBatches | None:
            return read_batches(log, offset, most, self._bytes_left, committed=committed)

        is_strict = self._request.share_acquire_mode == ShareAcquireMode.RECORD_LIMIT
        wanted = Acquisition(self._member, most, is_strict)
        while True:  # If all records that were read belong to aborted transactions, read the next records.
            acquired, found, change = share_partition.begin_acquire(wanted, read)
            share_partition.finish(change)
            if found is None:
                return None
            if acquired:
                break
        region = found.part(acquired)
        self._records_left -= sum(run.size for run in acquired)
        self._bytes_left -= region.size
        ranges = divided(acquired, found.offsets, self._request.batch_size)
        return PartitionData(records=region, acquired_records=ranges)


def divided(acquired: Iterable[Run], batches: Sequence[range], size: int) -> list[AcquiredRecords]:
    """Divide each run of acquired records into ranges. A client can acknowledge a whole range at once.

    A run contains neighboring records with the same delivery state. A range grows batch by batch until it contains
    at least `size` records, or until the run ends.

    For example, a run with the offsets 0 to 899 consists of three batches with 300 records each. If `size` is 500,
    the first range is 0 to 599 (two batches), and the second range is 600 to 899.
    """
    ranges = []
    for run in acquired:
        first = run.first
        for batch in batches:
            last = min(batch.stop - 1, run.last)
            if last >= first and (last - first + 1 >= max(size, 1) or last == run.last):
                ranges.append(AcquiredRecords(first_offset=first, last_offset=last, delivery_count=run.delivery_count))
                first = last + 1
    return ranges


def check_fetch(request: ShareFetchRequest) -> None:
    """Check the fields of a ShareFetch request. Raises INVALID_REQUEST."""
    if not request.group_id or not request.member_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A ShareFetch request needs a group id and a member id.")
    limits = (request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records)
    if request.is_renew_ack and any(limits):
        why = "max_wait_ms, min_bytes, max_bytes and max_records must be 0 if is_renew_ack is true."
        raise KafkaError(ErrorCode.INVALID_REQUEST, why)
