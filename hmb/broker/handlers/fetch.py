"""Fetch: read records from partitions, and wait for new records if too few exist.

Versions: 0-18; versions 12 and later use the flexible encoding (KIP-482).
Permissions: READ on each topic.
Behavior: the broker follows these rules:
    - *Wait.* The broker waits until the response contains `min_bytes` bytes of records, but at most
      `max_wait_ms` (and at most `connections.max.idle.ms`). The broker responds earlier if a partition has an
      error or a `diverging_epoch` (see *Diverging logs*), if the broker stops, or if another request needs the
      memory of this Fetch.
    - *New records.* When a producer appends records to a log, the broker wakes each Fetch that waits for
      records of this log. Every LOG_CHECK_INTERVAL seconds, the thread of a waiting Fetch also checks whether
      the client has disconnected, and whether a topic was deleted and created again (long_poll.py).
    - *Size.* The response contains at most `partition_max_bytes` bytes of each partition. In total, it contains
      at most `max_bytes` and at most `fetch.max.bytes` bytes. But the first batch of the response is always
      complete, even if it is larger than these limits.
    - *Records.* In versions 4 and later, the broker does not parse the records. The response refers to regions
      of log files, and the connection sends these regions with `sendfile`.
    - *Transactions.* A consumer with the isolation level READ_COMMITTED gets only records below the last stable
      offset. The consumer also gets a list of aborted transactions, and must skip their records itself.
    - *Fetch sessions.* The first request of a fetch session names all partitions. After that, requests and
      responses contain only partitions that have changed (fetch_sessions.py).
    - *Leader epochs.* If the client sends a wrong leader epoch for a partition, this partition gets an error.
    - *Diverging logs.* A client can send the leader epoch of the last record that it has fetched. The log may
      lack this record, for example after a power failure. If the broker detects this, the partition gets no
      records, and the client must go back to the end offset in the field `diverging_epoch` (leader_epochs.py).
Version notes: these versions add the main features:
    - Version 7 adds fetch sessions (KIP-227).
    - Version 9 adds the leader epoch of each partition (KIP-320).
    - Version 12 adds the epoch of the last fetched record (KIP-595).
    - Versions 13 and later name topics by their ids (KIP-516).
    - Versions 0 to 3 do not know record batches. The broker checks the batches before it responds. If the
      first batch is damaged, the client gets CORRUPT_MESSAGE. If the first batch has more than
      `max.decompressed.message.bytes` bytes after decompression, the client gets MESSAGE_TOO_LARGE. While the
      broker sends the response, it converts the batches to an older format (`FetchRequest.magic_of`,
      old_clients.py).
Left out: fetches by followers, because HMB has one broker. For the same reason, a client in another data
    center cannot read from a nearby replica (rack).
"""

from __future__ import annotations

from collections.abc import Sequence

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.fetch_sessions import CachedPartition
from hmb.broker.leader_epochs import check_epoch, set_divergence
from hmb.broker.long_poll import NO_RECORDS, long_poll
from hmb.broker.old_clients import converted
from hmb.protocol.enums import NO_OFFSET, IsolationLevel
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.fetch import FIRST_FETCH_VERSION_OF_IDS, FetchRequest, FetchResponse
from hmb.protocol.primitives import part_size
from hmb.records.batch import MAGIC
from hmb.storage.log import Log
from hmb.storage.watchers import Watchers

PartitionData = FetchResponse.FetchableTopicResponse.PartitionData
AbortedTransaction = PartitionData.AbortedTransaction
# The responses for all partitions share NO_END, NO_LEADER and NO_SNAPSHOT. Creating new objects for each partition
# would take longer than reading the records.
NO_END, NO_LEADER = PartitionData.EpochEndOffset(), PartitionData.LeaderIdAndEpoch()
NO_SNAPSHOT = PartitionData.SnapshotId()


def handle(request: FetchRequest, context: RequestContext) -> FetchResponse:
    uses_ids = context.version >= FIRST_FETCH_VERSION_OF_IDS
    try:
        fetch_context = context.broker.fetch_sessions.begin(request, uses_ids=uses_ids)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    fetch = _Fetch(request, fetch_context.partitions, context)
    long_poll(fetch, request.max_wait_ms, context)
    return fetch_context.respond(fetch.responses)


class _Fetch:
    """One Fetch request. `long_poll` calls `collect` until the response is ready, or until the wait ends."""

    def __init__(self, request: FetchRequest, partitions: Sequence[CachedPartition], context: RequestContext) -> None:
        self._partitions = partitions
        self._context = context
        version = context.version
        self._uses_ids = version >= FIRST_FETCH_VERSION_OF_IDS
        self._is_committed = request.isolation_level == IsolationLevel.READ_COMMITTED
        self._magic = FetchRequest.magic_of(version)
        self._max_bytes = min(request.max_bytes, context.broker.config.fetch_max_bytes)
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._logs: list[Log] = []
        self.responses: list[tuple[CachedPartition, PartitionData]] = []
        self.is_satisfied = False
        self._size = 0  # bytes of records in `responses`

    @property
    def watched(self) -> list[Watchers]:
        return [log.watchers for log in self._logs]

    def collect(self) -> None:
        self._logs.clear()
        self.responses.clear()
        self._size, failed = 0, False
        for partition in self._partitions:
            data = self._partition_response(partition)
            if data is not None:
                failed |= bool(data.error_code) or data.diverging_epoch is not NO_END
                self.responses.append((partition, data))
        self.is_satisfied = failed or not self._logs or self._size >= self._min_bytes

    def _partition_response(self, partition: CachedPartition) -> PartitionData | None:
        """Return the response for one partition, or None if nothing has changed for this partition."""
        try:
            log = partition.log(self._context.broker.topics, uses_ids=self._uses_ids)
        except KafkaError as error:
            return _without_records(partition, error.code)
        self._logs.append(log)
        if partition.is_unchanged(log):
            return None
        data = _without_records(partition)
        data.aborted_transactions = None
        with error_code_in(data):
            if partition.leader_epoch >= 0:  # Kafka ignores every negative epoch in a Fetch request.
                check_epoch(partition.leader_epoch, log)
            if partition.last_fetched_epoch < 0 or not set_divergence(partition, log, data):
                self._set_records(log, partition, data)
        return data

    def _set_records(self, log: Log, partition: CachedPartition, data: PartitionData) -> None:
        max_bytes = max(0, min(partition.max_bytes, self._max_bytes - self._size))
        offset, committed = partition.fetch_offset, self._is_committed
        found = log.read(offset, max_bytes, at_least_one=self._size == 0, committed=committed)
        data.log_start_offset, data.high_watermark, data.last_stable_offset = found.offsets
        if committed:
            data.aborted_transactions = [
                AbortedTransaction(producer_id=a.producer_id, first_offset=a.first_offset) for a in found.aborted
            ]
        if found.records is not None:
            if self._magic == MAGIC:
                data.records = found.records
            else:
                limit = self._context.broker.config.max_decompressed
                data.records = converted(found, log, self._magic, offset, max_bytes, limit)
            self._size += part_size(data.records)


def _without_records(partition: CachedPartition, code: ErrorCode = ErrorCode.NONE) -> PartitionData:
    return PartitionData(
        partition_index=partition.partition,
        error_code=code,
        high_watermark=NO_OFFSET,
        records=NO_RECORDS,
        diverging_epoch=NO_END,
        current_leader=NO_LEADER,
        snapshot_id=NO_SNAPSHOT,
    )
