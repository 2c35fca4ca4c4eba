"""Fetching all batches of a partition from its leader, byte for byte as the leader stores them.

The backup fetches with the isolation level `read_committed`. The leader then returns only batches below the
last stable offset. The backup stores all these batches, even transaction markers and the batches of aborted
transactions.
"""

from __future__ import annotations

from collections.abc import Iterator

from hmb.client.admin.brokers import Brokers, raised
from hmb.client.admin.records import list_offsets
from hmb.client.admin.whole_batches import fetch_batches
from hmb.protocol.enums import IsolationLevel
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition
from hmb.records import Batch, iter_batches

# The maximum size of a Fetch response, in bytes. If the first batch is larger, the leader still returns this batch.
MAX_BYTES = 8 * 1024 * 1024


def batches(brokers: Brokers, partition: TopicPartition, start: int, end: int) -> Iterator[Batch]:
    """Yield the batches of a partition from the offset `start` up to the offset `end`. Check each batch's checksum.

    Retention may delete records while the backup runs. If the next records were deleted, the function continues at the
    new log start offset. Raises KafkaError and ConnectionFailed.
    """
    position = start
    while position < end:
        try:
            data, _ = fetch_batches(brokers, partition, position, MAX_BYTES, IsolationLevel.READ_COMMITTED)
        except KafkaError as error:
            position = _new_start(brokers, partition, position, error)
            continue
        before = position
        for batch in iter_batches(data):
            if position <= batch.last_offset < end:  # The response may begin with batches below `position`.
                batch.check()
                yield batch
            position = max(position, batch.last_offset + 1)
        if position == before:
            what = f"{partition}: the leader returns no batch at offset {position}, but the partition ends at {end}"
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, what)


def _new_start(brokers: Brokers, partition: TopicPartition, position: int, error: KafkaError) -> int:
    """Return the offset at which the backup continues after a failed Fetch request for `position`.

    If the broker has deleted the record at `position`, the backup continues at the first offset that is still
    in the log. If the request has failed for another reason, the function raises `error`.
    """
    if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
        raise error
    start = raised(list_offsets(brokers, {partition: "earliest"})[partition]).offset
    if start <= position:
        raise error
    return start
