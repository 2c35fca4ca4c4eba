"""Fetch: read records from partitions, waiting for them where there are none yet.

Versions: 0-18, flexible from 12.
Behaviour: answers as soon as `min_bytes` are there, an error is to be told, `max_wait_ms` are over, or the broker
    stops; every partition asked for is in the answer.  A partition gives at most `partition_max_bytes`, all of them
    `max_bytes`, but the first batch found is given whole whatever its size.  The records are not read here: the
    answer holds regions of files, which the connection sends with sendfile.  A fetch that waits looks up now and then
    (LOOK_AGAIN): its client may have left, and a topic may have been made anew, whose log wakes nobody who watches
    the old one, so its first records come that much later.  No wait is longer than a connection may be idle.
Version notes: below 4 record batches are converted down to messages of magic 1 (2, 3) or 0 (0, 1); `max_bytes` from
    3, isolation level from 4, sessions from 7, leader epochs from 9; 13 names topics by id.
Left out: sessions; session id 0 tells the client to send full requests (KIP-227 allows it).  Followers, diverging
    epochs: one broker has no replicas.
"""

from __future__ import annotations

import time

from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.fetch import FetchRequest, FetchResponse
from hmb.protocol.primitives import part_size
from hmb.records.convert import down_convert
from hmb.storage.files import FileRegion
from hmb.storage.log import Log
from hmb.storage.watchers import Watcher

TopicResponse = FetchResponse.FetchableTopicResponse
PartitionData = TopicResponse.PartitionData
FetchPartition = FetchRequest.FetchTopic.FetchPartition
FIRST_VERSION_OF_BATCHES = 4
FIRST_VERSION_OF_MAGIC_1 = 2
FIRST_VERSION_OF_IDS = 13
LOOK_AGAIN = 1.0  # seconds
READ_COMMITTED = 1
NO_SESSION = 0
NO_EPOCH = -1


def handle(request: FetchRequest, context: RequestContext) -> FetchResponse:
    if request.session_id != NO_SESSION:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    max_wait = min(request.max_wait_ms, context.broker.config.connections_max_idle) / 1000
    deadline = time.monotonic() + max_wait
    fetch = _Fetch(request, context)
    response = fetch.read()
    return response if fetch.is_satisfied or max_wait <= 0 else _wait(fetch, deadline, context)


def _wait(fetch: _Fetch, deadline: float, context: RequestContext) -> FetchResponse:
    watcher = Watcher()
    watched = [*(log.watchers for log in fetch.logs), context.broker.stop.watchers]
    for watchers in watched:
        watchers.add(watcher)
    try:
        while True:
            response = fetch.read()  # once more after the watcher is in place: what came in between woke nobody
            remaining = deadline - time.monotonic()
            is_over = remaining <= 0 or context.broker.stop.requested.is_set() or context.is_client_gone()
            if fetch.is_satisfied or is_over:
                return response
            watcher.wait(min(remaining, LOOK_AGAIN))
    finally:
        for watchers in watched:
            watchers.discard(watcher)


class _Fetch:
    """One fetch request, read as often as it takes until it is satisfied."""

    def __init__(self, request: FetchRequest, context: RequestContext) -> None:
        self._request = request
        self._context = context
        self._max_bytes = min(request.max_bytes, context.broker.config.fetch_max_bytes)
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self.logs: list[Log] = []
        self.is_satisfied = False

    def read(self) -> FetchResponse:
        self.logs.clear()
        self._size, self._failed = 0, False
        response = FetchResponse()
        for topic in self._request.topics:
            topic_response = TopicResponse(topic=topic.topic, topic_id=topic.topic_id)
            response.responses.append(topic_response)
            name = topic.topic if self._context.version < FIRST_VERSION_OF_IDS else None
            for partition in topic.partitions:
                data = PartitionData(partition_index=partition.partition, high_watermark=-1, records=memoryview(b""))
                topic_response.partitions.append(data)
                with answering(data):
                    log = self._context.broker.topics.log(name, topic.topic_id, partition.partition)
                    self.logs.append(log)
                    self._read_partition(log, partition, data)
                self._failed |= bool(data.error_code)
        self.is_satisfied = self._failed or not self.logs or self._size >= self._min_bytes
        return response

    def _read_partition(self, log: Log, partition: FetchPartition, data: PartitionData) -> None:
        check_epoch(partition.current_leader_epoch, log)
        max_bytes = max(0, min(partition.partition_max_bytes, self._max_bytes - self._size))
        found = log.read(partition.fetch_offset, max_bytes, at_least_one=self._size == 0)
        data.high_watermark = data.last_stable_offset = found.high_watermark
        data.log_start_offset = found.log_start_offset
        data.aborted_transactions = [] if self._request.isolation_level == READ_COMMITTED else None
        if found.records is not None:
            data.records = self._converted(found.records, partition.fetch_offset, max_bytes)
            self._size += part_size(data.records)

    def _converted(self, records: FileRegion, offset: int, max_bytes: int) -> FileRegion | memoryview:
        """Records as this version's clients can read them."""
        version = self._context.version
        if version >= FIRST_VERSION_OF_BATCHES:
            return records
        magic = 1 if version >= FIRST_VERSION_OF_MAGIC_1 else 0
        limit = self._context.broker.config.max_decompressed
        return memoryview(down_convert(records.read(), magic, offset, max_bytes, limit))


def check_epoch(known: int, log: Log) -> None:
    """KIP-320: a client that knows another leader epoch than ours must look for its leader first."""
    if known != NO_EPOCH and known != log.leader_epoch:
        older = known < log.leader_epoch
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH)
