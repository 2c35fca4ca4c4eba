"""The checks of a batch before it is appended.

The broker checks records in three steps:
1. `parse_produced` parses the records of a Produce request. It raises the errors that depend on the request's version.
2. `check_batch` checks the bytes, the header and the size of a record batch. `check_sizes` and `check_messages` do the
   same for messages v0 and v1.
3. `_check_records` reads the records, if the log's settings require it.

The header of a record batch is parsed only once. `parse_produced` parses it and returns a `RecordBatch`. All
later functions, including the append to the log, use this object.

The broker usually checks only the header and the CRC of a batch, because decoding the records takes much
longer. It can therefore miss a wrong record count in the header. A consumer notices the error later.

The broker reads the records of a batch in three cases:
- The log is compacted. Each record then needs a key, and compaction must be able to read the record.
- The greatest timestamp in the header is too far in the future (`message.timestamp.after.max.ms`). The broker
  does not store the batch, because retention could not delete its segment for a very long time. The response
  lists the records with such a timestamp, at most MAX_ERRORS records.
- The log refuses records that are too old (`message.timestamp.before.max.ms`). The header does not contain the
  oldest timestamp, so the broker must read the timestamp of each record.

A producer can send records without a timestamp (-1), and the broker accepts them. If the broker replaces the timestamps
by its own time, it does not check the producer's timestamps.

A compressed batch of one megabyte may contain millions of records, and the broker would need seconds to read them. So
the broker reads at most MAX_BATCH_RECORDS records of a batch, and compaction has the same limit. If a batch has more
records, and the broker has to read them, the broker refuses the batch with MESSAGE_TOO_LARGE. After this error, Kafka's
producer splits the batch and sends the parts. An uncompressed batch of one megabyte cannot contain so many records.

Source: Kafka's `LogValidator`, KIP-937 (limits for timestamps), KIP-467 (the response lists the invalid
records).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from hmb.protocol.errors import ErrorCode, KafkaError, invalid_record
from hmb.protocol.messages.produce import ProduceRequest
from hmb.records import (
    NO_TIMESTAMP,
    RECORD_BATCH_OVERHEAD,
    AssignedMessages,
    Batch,
    Codec,
    RecordBatch,
    first_batch,
    iter_batches,
    parse_batch,
)
from hmb.records.batch import LOG_APPEND_TIME_BIT, MAGIC
from hmb.records.compression import CODEC_MASK
from hmb.records.filtering import MAX_BATCH_RECORDS
from hmb.records.partial_records import partial_records
from hmb.storage.batches.decoding import PREPARING
from hmb.storage.config import LogConfig

ProducedRecords = RecordBatch | memoryview  # one record batch, or the bytes of messages v0 or v1

SMALLEST_RECORD = 7  # bytes: length, attributes, two deltas, null key, null value, number of headers
MAX_ERRORS = 10  # a response names at most this number of invalid records, so that it stays small

NO_KEY = "a record of a compacted topic needs a key"
WRONG_TIME = "One or more records have been rejected due to invalid timestamp"


class InvalidRecords(KafkaError):
    """The error for a batch that the log cannot append, because some of its records are invalid.

    `errors` maps the index of an invalid record in the batch to an error message. `errors` contains at most the first
    MAX_ERRORS invalid records.
    """

    def __init__(self, code: ErrorCode, errors: Mapping[int, str]) -> None:
        super().__init__(code, WRONG_TIME if code is ErrorCode.INVALID_TIMESTAMP else NO_KEY)
        self.errors = errors


def parse_produced(records: memoryview | None, version: int, *, is_transactional: bool) -> ProducedRecords:
    """Check the records of one partition in a Produce request, and return them.

    A record batch is returned as a `RecordBatch`, and messages v0 or v1 as bytes. `version` is the version of the
    request. `is_transactional` is True if the request has a transactional id. Raises KafkaError with these codes:

    - INVALID_RECORD: the records are missing, a record batch is incomplete or followed by other bytes, or the
      version does not allow the format.
    - CORRUPT_MESSAGE: the bytes are neither a batch nor a message.
    - UNSUPPORTED_COMPRESSION_TYPE: the codec is unknown, or the version does not allow zstd.
    - TRANSACTIONAL_ID_AUTHORIZATION_FAILED: the batch is transactional, but the request is not.
    """
    if not records:
        raise invalid_record("no records")
    has_batches = ProduceRequest.magic_of(version) == MAGIC
    batch = first_batch(records) if has_batches else parse_batch(records)
    if batch is None or (has_batches and batch.size != len(records)):
        raise invalid_record(f"{len(records)} bytes are not one whole batch")
    if has_batches != isinstance(batch, RecordBatch):
        expected = "record batches v2" if has_batches else "messages v0 and v1"
        raise invalid_record(f"Produce v{version} takes {expected}, not magic {batch.magic}")
    codec = batch.codec  # raises UNSUPPORTED_COMPRESSION_TYPE for an unknown codec
    if codec is Codec.ZSTD and version < ProduceRequest.FIRST_VERSION_OF_ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Produce v{version} cannot carry zstd")
    if batch.is_transactional and not is_transactional:
        why = "the batch is transactional, but the request has no transactional id"
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, why)
    return batch if isinstance(batch, RecordBatch) else records


def check_batch(batch: RecordBatch, config: LogConfig, now: int) -> None:
    """Raise CORRUPT_MESSAGE, INVALID_RECORD, INVALID_TIMESTAMP or MESSAGE_TOO_LARGE if the log cannot accept the batch.

    `now` is the time in ms.
    """
    check_size(batch, config)
    batch.check_bytes()
    check_header(batch)
    if batch.base_offset:
        raise invalid_record(f"offsets of a new batch begin at 0, not at {batch.base_offset}")
    if batch.max_timestamp - now > config.message_timestamp_after_max_ms or config.looks_at_records:
        _check_records([batch], batch.records_count, batch.max_timestamp, config, now)


def check_header(batch: RecordBatch) -> None:
    """Raise INVALID_RECORD or INVALID_TIMESTAMP if the header contains values that a producer must not send."""
    if batch.is_control:
        raise invalid_record("clients must not write control records")
    if batch.records_count <= 0 or not batch.has_all_records:
        raise invalid_record(f"{batch.records_count} records, but a last offset delta of {batch.last_offset_delta}")
    content_size = batch.size - RECORD_BATCH_OVERHEAD
    if not batch.attributes & CODEC_MASK and batch.records_count * SMALLEST_RECORD > content_size:
        raise invalid_record(f"{batch.records_count} records do not fit into {content_size} bytes")
    if batch.producer_id >= 0 > batch.base_sequence:
        raise invalid_record(f"producer id {batch.producer_id} without a sequence number")
    if batch.attributes & LOG_APPEND_TIME_BIT:
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, "clients must not set the timestamp type LogAppendTime")


def check_sizes(records: memoryview, config: LogConfig) -> None:
    """Raise MESSAGE_TOO_LARGE if one message is larger than `max.message.bytes`.

    All messages of the request together may be larger than this limit.
    """
    if len(records) > config.max_message_bytes:
        for message in iter_batches(records):
            check_size(message, config)


def check_messages(messages: AssignedMessages, config: LogConfig, now: int) -> None:
    """Check the timestamps and the keys of messages v0 or v1. Raises the same errors as `check_batch`."""
    if messages.max_timestamp - now > config.message_timestamp_after_max_ms or config.looks_at_records:
        _check_records(iter_batches(messages.data), messages.count, messages.max_timestamp, config, now)


def check_size(batch: Batch, config: LogConfig) -> None:
    """Raise MESSAGE_TOO_LARGE if the batch is larger than `max.message.bytes`."""
    if batch.size > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch is too large: it has {batch.size} bytes, but max.message.bytes is {config.max_message_bytes}",
        )


def _check_records(batches: Iterable[Batch], count: int, max_timestamp: int, config: LogConfig, now: int) -> None:
    """Check the keys and the timestamps of all records in these batches, if the settings of the log require it.

    `count` is the total number of records, and `max_timestamp` (ms) is the greatest timestamp in the headers.
    """
    has_limits = not config.uses_log_append_time
    if not (has_limits or config.compacts):
        return
    with PREPARING:
        errors, code = _errors(batches, has_limits, config, now)
    if errors:
        raise InvalidRecords(code, errors)
    if has_limits and max_timestamp > now + config.message_timestamp_after_max_ms:
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, f"no record has the batch's max timestamp, {max_timestamp}")
    check_count(count)


def check_count(count: int) -> None:
    """Raise MESSAGE_TOO_LARGE if `count`, the number of records in a batch, is above MAX_BATCH_RECORDS.

    The broker reads at most MAX_BATCH_RECORDS records of a batch.
    """
    if count > MAX_BATCH_RECORDS:
        why = f"{count} records in a batch: the log has to read each of them, and reads {MAX_BATCH_RECORDS} at most"
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, why)


def _errors(
    batches: Iterable[Batch], has_limits: bool, config: LogConfig, now: int
) -> tuple[dict[int, str], ErrorCode]:
    """Return a dict that maps the index of each invalid record to an error message, and one error code.

    The error code applies to all of these records. The function reads at most MAX_BATCH_RECORDS records. It stops
    when it has found MAX_ERRORS invalid records.
    """
    code = ErrorCode.INVALID_RECORD
    errors: dict[int, str] = {}
    earliest, latest = now - config.message_timestamp_before_max_ms, now + config.message_timestamp_after_max_ms
    records = (record for batch in batches for record in partial_records(batch, config.max_decompressed))
    for index, (offset, timestamp, has_key) in enumerate(islice(records, MAX_BATCH_RECORDS)):
        if config.compacts and not has_key:
            errors[index] = NO_KEY
        elif has_limits and not earliest <= timestamp <= latest and timestamp != NO_TIMESTAMP:
            code = ErrorCode.INVALID_TIMESTAMP
            errors[index] = (
                f"Timestamp {timestamp} of message with offset {offset} is out of range. "
                f"The timestamp should be within [{earliest}, {latest}]"
            )
        if len(errors) == MAX_ERRORS:
            break
    return errors, code
