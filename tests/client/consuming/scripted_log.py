"""A simulated partition that answers a consumer's Fetch and ListOffsets requests."""

from __future__ import annotations

import threading
import time

from hmb.client import Consumer
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.fetch import FetchRequest, FetchResponse
from hmb.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from hmb.protocol.schema import Request, Response
from hmb.records import Record
from tests.client.scripted_broker import HangUp

RECORDS = [Record(timestamp=1, value=b"%d" % number) for number in range(4)]


class Log:
    """Answers requests like a broker with one partition.

    The partition contains the record batches in `data`. Its high watermark is `end`.
    """

    def __init__(self, data: bytes, end: int, *troubles: ErrorCode | bool) -> None:
        self.data, self.end = data, end
        self.aborted: list[tuple[int, int]] = []  # the producer id and the first offset of each aborted transaction
        self.troubles = list(troubles)
        self.asked: list[tuple[int, int]] = []  # the offset and the partition_max_bytes of each fetch

    def __call__(self, request: Request, version: int) -> Response | None:
        if isinstance(request, ListOffsetsRequest):
            latest = request.topics[0].partitions[0].timestamp == -1
            return self._offset(self.end if latest else 0, version)
        assert isinstance(request, FetchRequest)
        partition = request.topics[0].partitions[0]
        self.asked.append((partition.fetch_offset, partition.partition_max_bytes))
        trouble = self.troubles.pop(0) if self.troubles else ErrorCode.NONE
        if isinstance(trouble, bool):
            raise HangUp
        data = b"" if trouble or partition.fetch_offset >= self.end else self.data[: partition.partition_max_bytes]
        topic = FetchResponse.FetchableTopicResponse
        answer = topic.PartitionData(error_code=trouble, high_watermark=self.end, records=memoryview(data))
        answer.last_stable_offset = self.end
        aborted = topic.PartitionData.AbortedTransaction
        answer.aborted_transactions = [aborted(producer_id=it, first_offset=first) for it, first in self.aborted]
        return FetchResponse(responses=[topic(topic="t", partitions=[answer])])

    def _offset(self, offset: int, version: int) -> ListOffsetsResponse:
        topic = ListOffsetsResponse.ListOffsetsTopicResponse
        answer = topic.ListOffsetsPartitionResponse()
        if version == 0:
            answer.old_style_offsets = [offset]
        else:
            answer.offset = offset
        return ListOffsetsResponse(topics=[topic(name="t", partitions=[answer])])


class Late:
    """A log whose first Fetch responses arrive too late, after the request timeout."""

    def __init__(self, log: Log, times: int, seconds: float) -> None:
        self.log, self.times, self.seconds = log, times, seconds
        self.over = threading.Event()

    def __call__(self, request: Request, version: int) -> Response | None:
        if isinstance(request, FetchRequest) and self.times:
            self.times -= 1
            self.over.wait(self.seconds)
        return self.log(request, version)


def poll_all(consumer: Consumer, count: int) -> list[bytes]:
    """Poll until the consumer has returned `count` records, but for at most 10 s. Return the values of the records."""
    found: list[bytes] = []
    deadline = time.monotonic() + 10
    while len(found) < count and time.monotonic() < deadline:
        found += [record.value for record in consumer.poll(0.5, count - len(found))]
    return found
