"""What a producer may append to a log.

The broker reads only a batch's header and CRC, so an append costs the same whatever the records are.  A consumer finds
out when the records of a batch v2 contradict its header.  The broker reads each record in these cases only:

- The log is compacted.  Then each record needs a key, and compaction must be able to read it.
- The header names a timestamp too far in the future (`message.timestamp.after.max.ms`).  The response names the records
  that have such a timestamp.  A record like that would keep its segment from ever being deleted for its age.
- The log has a limit for the past (`message.timestamp.before.max.ms`).  No header names the oldest record.

Records without a timestamp (-1) pass.  Where the broker sets the timestamps, these need no check.

A megabyte of compressed records may hold millions of them, and reading each one would take seconds.  So the broker
reads MOST_RECORDS of a batch at most, as many as compaction can filter.  It refuses a larger batch with
MESSAGE_TOO_LARGE, the error on which Kafka's producer splits its batch and tries again.  A megabyte of uncompressed
records never holds so many.

Source: Kafka's `LogValidator`, KIP-937 (timestamps), KIP-467 (which records were refused).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import NO_TIMESTAMP, AssignedMessages, Batch, RecordBatch, iter_batches
from hmb.records.filtering import MOST_RECORDS
from hmb.records.heads import heads
from hmb.storage.batches.opening import PREPARING
from hmb.storage.config import LogConfig

MOST_ERRORS = 10  # that are named: a response must not become larger than its request

NO_KEY = "a record of a compacted topic needs a key"
WRONG_TIME = "One or more records have been rejected due to invalid timestamp"


class InvalidRecords(KafkaError):
    """Some records of a batch cannot be appended, so none of the batch is.

    `errors` has the reasons for the first MOST_ERRORS of them, by their index in the batch.
    """

    def __init__(self, code: ErrorCode, errors: Mapping[int, str]) -> None:
        super().__init__(code, WRONG_TIME if code is ErrorCode.INVALID_TIMESTAMP else NO_KEY)
        self.errors = errors


def check_batch(batch: RecordBatch, length: int, config: LogConfig, now: int) -> None:
    """Raise CORRUPT_MESSAGE, INVALID_RECORD, INVALID_TIMESTAMP or MESSAGE_TOO_LARGE if the log cannot take the batch.

    `length` is the number of bytes that the producer sent; `now` is in ms.
    """
    if length > config.max_message_bytes:
        check_size(batch, config)
    batch.check_bytes()
    batch.validate()
    if batch.base_offset:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"offsets of a new batch begin at 0, not at {batch.base_offset}")
    if len(batch.view) != length:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"one batch of {batch.size} bytes expected, {length} bytes came")
    if batch.max_timestamp - now > config.message_timestamp_after_max_ms or config.looks_at_records:
        _check_records([batch], batch.records_count, batch.max_timestamp, config, now)


def check_sizes(records: memoryview, config: LogConfig) -> None:
    """Raise MESSAGE_TOO_LARGE if a message is larger than the limit; the set may be larger."""
    if len(records) > config.max_message_bytes:
        for message in iter_batches(records):
            check_size(message, config)


def check_messages(messages: AssignedMessages, config: LogConfig, now: int) -> None:
    """Check what was not checked while the messages got their offsets.  Raises as `check_batch` does."""
    if messages.max_timestamp - now > config.message_timestamp_after_max_ms or config.looks_at_records:
        _check_records(iter_batches(messages.data), messages.count, messages.max_timestamp, config, now)


def check_size(batch: Batch, config: LogConfig) -> None:
    """Raise MESSAGE_TOO_LARGE if the batch is larger than the limit."""
    if batch.size > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE, f"batch of {batch.size} bytes, max.message.bytes is {config.max_message_bytes}"
        )


def _check_records(batches: Iterable[Batch], count: int, newest: int, config: LogConfig, now: int) -> None:
    """Read the records, `count` in all; `newest` is the greatest of their timestamps by their headers."""
    has_limits = config.message_timestamp_type == "CreateTime"
    if not (has_limits or config.compacts):
        return
    with PREPARING:
        errors, code = _errors(batches, has_limits, config, now)
    if errors:
        raise InvalidRecords(code, errors)
    if has_limits and newest > now + config.message_timestamp_after_max_ms:
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, f"{newest}, the batch's max timestamp, is none of its records'")
    check_count(count)


def check_count(count: int) -> None:
    """Raise MESSAGE_TOO_LARGE if a batch has too many records for a log that has to read each of them."""
    if count > MOST_RECORDS:
        why = f"{count} records in a batch: the log has to read each of them, and reads {MOST_RECORDS} at most"
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, why)


def _errors(
    batches: Iterable[Batch], has_limits: bool, config: LogConfig, now: int
) -> tuple[dict[int, str], ErrorCode]:
    """Return what is wrong with the first MOST_RECORDS records, by their index, and the error code for it."""
    code, errors = ErrorCode.INVALID_RECORD, dict[int, str]()
    earliest, latest = now - config.message_timestamp_before_max_ms, now + config.message_timestamp_after_max_ms
    all_heads = (head for batch in batches for head in heads(batch, config.max_decompressed))
    for index, (offset, timestamp, has_key) in enumerate(islice(all_heads, MOST_RECORDS)):
        if config.compacts and not has_key:
            errors[index] = NO_KEY
        elif has_limits and not earliest <= timestamp <= latest and timestamp != NO_TIMESTAMP:
            code = ErrorCode.INVALID_TIMESTAMP
            errors[index] = (
                f"Timestamp {timestamp} of message with offset {offset} is out of range. "
                f"The timestamp should be within [{earliest}, {latest}]"
            )
        if len(errors) == MOST_ERRORS:
            break
    return errors, code
