"""The share session of a consumer with one broker: its fetches, and its acknowledgements.

The first request of a share session has the epoch 0 and names all partitions. Each later request has the next
epoch, and contains only partitions to add, partitions to remove, and acknowledgements.

After an error of the session or of the connection, the client begins a new session with epoch 0. When the old
session ends, the broker releases the records that the client had acquired in it. The group delivers these
records again, so the client forgets them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.errors import response_error
from hmb.client.share.acknowledgements import AcquiredOffsets, ShareRecord, ranges
from hmb.protocol.enums import FINAL_SESSION_EPOCH, INITIAL_SESSION_EPOCH, INT32_MAX, AcknowledgeType, ShareAcquireMode
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from hmb.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from hmb.protocol.topics import PartitionId
from hmb.records import iter_batches
from hmb.records.fast.consumer_records import consumer_records

FetchTopic, ForgottenTopic = ShareFetchRequest.FetchTopic, ShareFetchRequest.ForgottenTopic
AcknowledgeTopic = ShareAcknowledgeRequest.AcknowledgeTopic
PartitionData = ShareFetchResponse.ShareFetchableTopicResponse.PartitionData
Errors = dict[PartitionId, KafkaError]
ENDED = (ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH)


class ShareSessionHandler:
    """One share session. `acquired` maps each partition to the offsets that the member has acquired."""

    def __init__(self, connection: Connection, group_id: str, member_id: str, acquire_mode: ShareAcquireMode) -> None:
        self._connection, self._group_id, self._member_id = connection, group_id, member_id
        self._acquire_mode = acquire_mode
        self._reset()

    def _reset(self) -> None:
        self._epoch = INITIAL_SESSION_EPOCH
        self._partitions: set[PartitionId] = set()  # the partitions that the broker knows
        self.acquired: dict[PartitionId, AcquiredOffsets] = {}

    def fetch(
        self, wanted: Collection[PartitionId], max_wait_ms: int, max_bytes: int, max_records: int
    ) -> tuple[ShareFetchResponse, Errors]:
        """Send all acknowledgements to the broker, and fetch records of the partitions in `wanted`.

        Return the response, and a dict that maps each partition with a failed acknowledgement to its error. Raises
        ConnectionFailed, KafkaError. After one of these exceptions, the next request begins a new session.
        """
        chosen = self._chosen()
        named = set(chosen) | (set(wanted) - self._partitions)
        request = ShareFetchRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=self._epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            max_records=max_records,
            batch_size=max_records,
            share_acquire_mode=self._acquire_mode,
            topics=_topics(FetchTopic, FetchTopic.FetchPartition, named, chosen),
            forgotten_topics_data=[
                ForgottenTopic(topic_id=it.topic_id, partitions=[it.partition]) for it in self._partitions - set(wanted)
            ],
        )
        response: ShareFetchResponse = self._send(request)
        self._partitions = set(wanted)
        errors = {
            partition: response_error(partition, data.acknowledge_error_code, data.acknowledge_error_message)
            for partition, data in _partitions_of(response)
            if data.acknowledge_error_code
        }
        return response, errors

    def acknowledge(self, *, closes: bool = False) -> Errors:
        """Send all acknowledgements without a fetch, and return the errors. If `closes` is true, close the session."""
        chosen = self._chosen()
        if self._epoch == INITIAL_SESSION_EPOCH or not (chosen or closes):
            return {}
        return self._acknowledge(chosen, FINAL_SESSION_EPOCH if closes else self._epoch, renews=False)

    def renew(self, partition: PartitionId, offset: int) -> Errors:
        """Extend the lock of one record."""
        renewed = {partition: ranges({offset: AcknowledgeType.RENEW})}
        return self._acknowledge(renewed, self._epoch, renews=True)

    def _acknowledge(self, chosen: dict[PartitionId, Any], epoch: int, *, renews: bool) -> Errors:
        request = ShareAcknowledgeRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=epoch,
            is_renew_ack=renews,
            topics=_topics(AcknowledgeTopic, AcknowledgeTopic.AcknowledgePartition, chosen, chosen),
        )
        response: ShareAcknowledgeResponse = self._send(request)
        return partition_errors(response)

    def _chosen(self) -> dict[PartitionId, Any]:
        return {it: taken for it, offsets in self.acquired.items() if (taken := offsets.take())}

    def _send(self, request: ShareFetchRequest | ShareAcknowledgeRequest) -> Any:
        try:
            response = self._connection.send(request)
            if response.error_code:
                raise response_error(f"share group {self._group_id!r}", response.error_code, response.error_message)
        except (ConnectionFailed, KafkaError):
            self._reset()
            raise
        self._epoch = 1 if self._epoch == INT32_MAX else self._epoch + 1
        return response

    def records(self, response: ShareFetchResponse, names: dict[PartitionId, str]) -> Iterator[ShareRecord]:
        """Yield the acquired records of a response. `names` maps each partition to the name of its topic.

        The broker can also acquire offsets at which no record exists, for example after log compaction. Such an offset
        gets the acknowledgement GAP. Raises KafkaError if a batch is damaged.
        """
        for partition, data in _partitions_of(response):
            if not data.acquired_records or not isinstance(data.records, memoryview):
                continue
            counts = {
                offset: acquired.delivery_count
                for acquired in data.acquired_records
                for offset in range(acquired.first_offset, acquired.last_offset + 1)
            }
            offsets = self.acquired.setdefault(partition, AcquiredOffsets())
            for batch in iter_batches(data.records):
                batch.check()
                if batch.is_control:
                    continue
                for record in consumer_records(batch, names[partition], partition.partition):
                    if (count := counts.pop(record.offset, None)) is not None:
                        offsets.waiting.add(record.offset)
                        yield ShareRecord(*record, count)
            offsets.chosen |= dict.fromkeys(counts, AcknowledgeType.GAP)

    def close(self) -> None:
        self._connection.close()


def partition_errors(response: ShareFetchResponse | ShareAcknowledgeResponse) -> Errors:
    """Return the errors of the partitions in a response."""
    return {
        partition: response_error(partition, data.error_code, data.error_message)
        for partition, data in _partitions_of(response)
        if data.error_code
    }


def _partitions_of(response: Any) -> Iterator[tuple[PartitionId, Any]]:
    for topic in response.responses:
        for data in topic.partitions:
            yield PartitionId(topic.topic_id, data.partition_index), data


def _topics(
    topic_class: Any, partition_class: Any, named: Iterable[PartitionId], chosen: dict[PartitionId, Any]
) -> list[Any]:
    """Return the partitions of a request with their acknowledgements, grouped by topic."""
    topics: dict[Any, list[Any]] = {}
    for partition in sorted(named):
        batches = [
            partition_class.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
            for first, last, types in chosen.get(partition, ())
        ]
        each = partition_class(partition_index=partition.partition, acknowledgement_batches=batches)
        topics.setdefault(partition.topic_id, []).append(each)
    return [topic_class(topic_id=topic_id, partitions=partitions) for topic_id, partitions in topics.items()]
