"""What a producer may append to a log.

The broker looks at a batch's header and CRC only, so that an append costs the same whatever is inside: a batch v2 whose
records lie about themselves is found by those who read it.  The exceptions, where each record is looked at:

- a compacted log, which has to know that each record has a key;
- a header that tells of a timestamp too far in the future (`message.timestamp.after.max.ms`), to say which records they
  are.  Such a record would keep its segment from ever being deleted for its age;
- a log that has a limit for the other side (`message.timestamp.before.max.ms`), as no header names the oldest record.

Records without a timestamp (-1) pass, and where the broker sets the time there is nothing to check.

Source: Kafka's `LogValidator`, KIP-937 (timestamps), KIP-467 (which records were refused).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import NO_TIMESTAMP, AssignedMessages, Batch, RecordBatch, iter_batches
from hmb.records.filtering import raw_records
from hmb.storage.config import LogConfig

NO_KEY = "a record of a compacted topic needs a key"
WRONG_TIME = "One or more records have been rejected due to invalid timestamp"


class InvalidRecords(KafkaError):
    """Some records of a batch cannot be taken, so none is; says why, by their place in the batch from 0 on."""

    def __init__(self, code: ErrorCode, errors: Mapping[int, str]) -> None:
        super().__init__(code, WRONG_TIME if code is ErrorCode.INVALID_TIMESTAMP else NO_KEY)
        self.errors = errors


def check_batch(batch: RecordBatch, length: int, config: LogConfig, now: int) -> None:
    """Raises CORRUPT_MESSAGE, INVALID_RECORD, INVALID_TIMESTAMP, MESSAGE_TOO_LARGE.

    `length` is that of all bytes that came; `now` in ms.
    """
    if length > config.max_message_bytes:
        check_size(batch, config)
    batch.check_bytes()
    batch.validate()
    if batch.base_offset:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"offsets of a new batch begin at 0, not at {batch.base_offset}")
    if len(batch.view) != length:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"one batch of {batch.size} bytes expected, {length} bytes came")
    _check_records([batch], batch.max_timestamp, config, now)


def check_sizes(records: memoryview, config: LogConfig) -> None:
    """The limit is for each message, not for the set."""
    if len(records) > config.max_message_bytes:
        for message in iter_batches(records):
            check_size(message, config)


def check_messages(messages: AssignedMessages, config: LogConfig, now: int) -> None:
    """What was not checked while they got their offsets.  Raises as `check_batch` does."""
    _check_records(iter_batches(messages.data), messages.max_timestamp, config, now)


def check_size(batch: Batch, config: LogConfig) -> None:
    if batch.size > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE, f"batch of {batch.size} bytes, max.message.bytes is {config.max_message_bytes}"
        )


def _check_records(batches: Iterable[Batch], newest: int, config: LogConfig, now: int) -> None:
    """Look at each record, if need be; `newest` is the greatest of their timestamps, as the header has it."""
    if newest - now <= config.message_timestamp_after_max_ms and not config.looks_at_records:
        return
    has_limits = config.message_timestamp_type == "CreateTime"
    if not (has_limits or config.compacts):
        return
    code, errors = ErrorCode.INVALID_RECORD, dict[int, str]()
    earliest, latest = now - config.message_timestamp_before_max_ms, now + config.message_timestamp_after_max_ms
    for index, (offset, timestamp, key) in enumerate(_heads(batches, config.max_decompressed)):
        if config.compacts and key is None:
            errors[index] = NO_KEY
        elif has_limits and not earliest <= timestamp <= latest and timestamp != NO_TIMESTAMP:
            code = ErrorCode.INVALID_TIMESTAMP
            errors[index] = (
                f"Timestamp {timestamp} of message with offset {offset} is out of range. "
                f"The timestamp should be within [{earliest}, {latest}]"
            )
    if errors:
        raise InvalidRecords(code, errors)
    if has_limits and newest > latest:
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, f"{newest}, the batch's max timestamp, is none of its records'")


def _heads(batches: Iterable[Batch], limit: int) -> Iterator[tuple[int, int, bytes | None]]:
    """Offset, timestamp and key of each record."""
    for batch in batches:
        if isinstance(batch, RecordBatch):
            for raw in raw_records(batch, batch.uncompressed(limit)):
                yield raw.offset, batch.base_timestamp + raw.timestamp_delta, raw.key
        else:
            for record in batch.records(limit):
                yield record.offset, record.timestamp, record.key
