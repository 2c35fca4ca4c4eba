"""Partial records: only the offset and the timestamp of a record, and whether the record has a key.

A broker reads partial records for two purposes. It checks each record, if the settings of the topic require this
(storage/batches/validation.py). It also finds the first record at or after a certain time in a batch
(storage/batches/time_search.py).

The function `partial_records` does not copy the values of the records, because values can be large. For example,
a compressed batch of one kilobyte may contain a value of 32 MB.

Source: Kafka's `PartialDefaultRecord`.
"""

from collections.abc import Iterator
from typing import NamedTuple

from hmb.records.batch import LOG_APPEND_TIME_BIT, RecordBatch
from hmb.records.compression import DEFAULT_LIMIT
from hmb.records.fast.raw_records import raw_records
from hmb.records.reading import Batch


class PartialRecord(NamedTuple):
    """The fields of a record that a broker checks: offset, timestamp, and whether it has a key.

    The timestamp is in ms since 1970. The value -1 means no timestamp, as in messages v0.
    """

    offset: int
    timestamp: int
    has_key: bool


def partial_records(batch: Batch, limit: int = DEFAULT_LIMIT) -> Iterator[PartialRecord]:
    """Yield the offset and the timestamp of each record in a batch, and whether the record has a key.

    The caller must call the batch's `check` method before it calls this function. Raises KafkaError if a record
    cannot be decoded, or if the records have more than `limit` bytes after decompression.
    """
    if not isinstance(batch, RecordBatch):
        log_append_time = batch.log_append_time
        for offset, message in batch.entries(limit):
            timestamp = message.timestamp if log_append_time is None else log_append_time
            yield PartialRecord(offset, timestamp, message.key_and_value()[0] is not None)
        return
    base_timestamp, max_timestamp = batch.base_timestamp, batch.max_timestamp
    is_append_time = batch.attributes & LOG_APPEND_TIME_BIT
    for raw in raw_records(batch, batch.uncompressed(limit)):
        timestamp = max_timestamp if is_append_time else base_timestamp + raw.timestamp_delta
        yield PartialRecord(raw.offset, timestamp, raw.key_size >= 0)
