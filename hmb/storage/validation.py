"""What a producer may append to a log.

The broker looks at a batch's header and CRC only, so that an append costs the same whatever is inside: a batch v2 whose
records lie about themselves is found by those who read it.  The exception is a compacted log, which has to know that
each record has a key.
"""

from __future__ import annotations

from collections.abc import Iterable

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import Batch, RecordBatch, iter_batches
from hmb.records.filtering import keys_of
from hmb.storage.config import LogConfig


class InvalidRecords(KafkaError):
    """Some records of a batch cannot be taken, so none is; says which, by their place in the batch from 0 on."""

    def __init__(self, indexes: list[int], why: str) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, why)
        self.indexes = indexes
        self.why = why


def check_batch(batch: RecordBatch, length: int, config: LogConfig) -> None:
    """Raises CORRUPT_MESSAGE, INVALID_RECORD, MESSAGE_TOO_LARGE; `length` is that of all bytes that came."""
    _check_size(batch, config)
    batch.check()
    batch.validate()
    if batch.size != length:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"one batch of {batch.size} bytes expected, {length} bytes came")
    if config.compacts:
        _check_keys([batch])


def check_messages(records: memoryview, config: LogConfig) -> None:
    """What is not checked while they get their offsets.  Raises as `check_batch` does."""
    if len(records) > config.max_message_bytes:
        for message in iter_batches(records):
            _check_size(message, config)
    if config.compacts:
        _check_keys(iter_batches(records))


def _check_size(batch: Batch, config: LogConfig) -> None:
    if batch.size > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE, f"batch of {batch.size} bytes, max.message.bytes is {config.max_message_bytes}"
        )


def _check_keys(batches: Iterable[Batch]) -> None:
    """A compacted log keeps the last record of each key, so each record needs one."""
    keys = [key for batch in batches for _, key in keys_of(batch)]
    keyless = [index for index, key in enumerate(keys) if key is None]
    if keyless:
        raise InvalidRecords(keyless, "a record of a compacted topic needs a key")
