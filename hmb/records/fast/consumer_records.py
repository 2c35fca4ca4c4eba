"""Decodes a batch to objects of the class `ConsumerRecord`, which a consumer returns.

The function `decode_records` in `hmb.records.record` is easier to read, but slower. It calls a function to
decode each varint. It also creates a `Record` for each record, and the consumer would then have to copy this
`Record` to a `ConsumerRecord`. The fast decoder in this module avoids both costs. It decodes varints of one or
two bytes without a function call, and creates each `ConsumerRecord` (a tuple) directly.

The fast decoder's local variables contain numbers in the *zigzag form* of varints. An even number n stands for
n / 2, and an odd number n stands for -(n + 1) / 2. For example, 40 stands for 20, and 3 stands for -2.

If a batch has damaged or unusual records, the fast decoder stops, and `decode_records` decodes the batch again. So the
caller always gets the same records and the same errors as from `decode_records`.
"""

from __future__ import annotations

from collections.abc import Callable

from hmb.protocol.errors import KafkaError
from hmb.records.batch import LOG_APPEND_TIME_BIT, RecordBatch
from hmb.records.compression import DEFAULT_LIMIT
from hmb.records.consumer_record import ConsumerRecord
from hmb.records.fast.plain import (
    AFTER_SECOND,
    END_AFTER_ONE,
    END_AFTER_TWO,
    MAX_PLAIN_TIMESTAMP,
    NULL,
    NotPlainError,
    has_plain_numbers,
)
from hmb.records.reading import Batch
from hmb.records.record import Header, decode_headers
from hmb.records.varint import VarintError, read_varint

# The fast decoder reads at most three bytes of an offset delta. If a fourth byte follows, the bit 0x80 of the third
# byte is set. The decoded number is then greater than this limit, and the decoder raises NotPlainError.
MAX_PLAIN_DELTA = (1 << 21) - 1

AddRecord = Callable[[ConsumerRecord], None]


def consumer_records(batch: Batch, topic: str, partition: int, limit: int = DEFAULT_LIMIT) -> list[ConsumerRecord]:
    """Decode the records of a batch. The caller must call the batch's `check` method first.

    Raises KafkaError if the records cannot be decoded, or have more than `limit` bytes after decompression.
    """
    if isinstance(batch, RecordBatch) and has_plain_numbers(batch):
        records: list[ConsumerRecord] = []
        data = batch.uncompressed(limit)
        try:
            if _decode_plain(data, batch, topic, partition, records.append) == len(data):
                return records
        except (NotPlainError, IndexError, VarintError):
            pass
    return [
        ConsumerRecord(topic, partition, it.offset, it.timestamp, it.timestamp_type, it.key, it.value, it.headers)
        for it in batch.records(limit)
    ]


def _decode_plain(data: bytes, batch: RecordBatch, topic: str, partition: int, add: AddRecord) -> int:
    """Decode records, and call `add` with each record. Return the position after the last record.

    Raises NotPlainError, IndexError or VarintError if a record is damaged, or valid but unusual: for example, its
    length is greater than 8191. The caller must then decode the batch with a slower decoder.
    """
    base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
    last_delta = min(batch.last_offset_delta << 1, MAX_PLAIN_DELTA)
    append_time = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME_BIT else None
    timestamp_type, new, kind, start = batch.timestamp_type, tuple.__new__, ConsumerRecord, 0
    for _ in range(batch.records_count):
        if (size := data[start]) < 0x80:  # True if the length of the record is encoded in one byte.
            end, position = start + END_AFTER_ONE[size], start + 2  # + 2 skips the length and the attributes.
        else:
            end, position = start + END_AFTER_TWO[size] + AFTER_SECOND[data[start + 1]], start + 3
        if (step := data[position]) >= 0x80:
            step, position = step + (data[position + 1] << 7) - 0x80, position + 1
            if step >= 0x4000:
                step, position = _time_step(data, position - 1)
        position += 1
        if (delta := data[position]) >= 0x80:
            delta, position = delta + (data[position + 1] << 7) - 0x80, position + 1
            if delta >= 0x4000:
                delta, position = delta + (data[position + 1] << 14) - 0x4000, position + 1
        position += 1
        if (key_size := data[position]) >= 0x80:
            key_size, position = key_size + (data[position + 1] << 7) - 0x80, position + 1
        position += 1
        key = None if key_size == NULL else data[position : (position := position + (key_size >> 1))]
        if (size := data[position]) >= 0x80:
            size, position = size + (data[position + 1] << 7) - 0x80, position + 1
        position += 1
        value = None if size == NULL else data[position : (position := position + (size >> 1))]
        if data[position]:
            headers, position = _headers(data, position)
        else:
            headers, position = (), position + 1
        if position != end or delta > last_delta or delta & 1:
            raise NotPlainError
        if (key_size & 1 and key is not None) or (size & 1 and value is not None):
            raise NotPlainError
        timestamp = base_timestamp + (step >> 1 ^ -(step & 1)) if append_time is None else append_time
        add(new(kind, (topic, partition, base_offset + (delta >> 1), timestamp, timestamp_type, key, value, headers)))
        start = end
    return start


def _time_step(data: bytes, position: int) -> tuple[int, int]:
    """Decode a timestamp delta that begins at `position` and has more than two bytes.

    Return the delta in zigzag form (40 stands for 20), and the position of its last byte. Raises NotPlainError if
    the delta is too large for this decoder.
    """
    number, end = read_varint(data, position)
    if abs(number) > MAX_PLAIN_TIMESTAMP:
        raise NotPlainError
    return number << 1 ^ number >> 63, end - 1


def _headers(data: bytes, position: int) -> tuple[tuple[Header, ...], int]:
    count, position = read_varint(data, position)
    try:
        return decode_headers(data, position, count)
    except (KafkaError, UnicodeDecodeError) as error:
        raise NotPlainError from error
