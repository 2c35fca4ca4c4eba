"""From the bytes of a batch straight to what a consumer hands out, at the speed that a consumer needs.

`decode_records` (record.py) is the version to read: it makes a `Record` of each record, with a call for each of its
varints, and takes some 2 us for it. A consumer would then have to copy each into a `ConsumerRecord`. Here the varints
of one byte, and where there are many the ones of two, are taken apart in place, and a record costs one tuple: 0.8 us.

Whatever looks unusual, be it damaged or just rare, is left to `decode_records`, a batch at a time; it also says what is
wrong. So both give the same records or the same error, and tests compare them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from hmb.protocol.errors import KafkaError
from hmb.records.batch import LOG_APPEND_TIME_BIT, RecordBatch
from hmb.records.compression import DEFAULT_LIMIT
from hmb.records.plain_records import END_AFTER_ONE, END_AFTER_TWO, NULL
from hmb.records.reading import Batch
from hmb.records.record import MAX_INT64, Header, TimestampType, decode_headers
from hmb.records.varint import VarintError, read_varint

USUAL_TIME = MAX_INT64 // 2  # two of these can be added


class ConsumerRecord(NamedTuple):
    """A record and where it was; the timestamp is in ms since 1970, -1 in formats without one.

    Key and value are bytes or None, or what the consumer's deserializers make of them.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: Any
    value: Any
    headers: tuple[Header, ...]


class _Unusual(Exception):
    """Something that has to be looked at with care."""


def consumer_records(batch: Batch, topic: str, partition: int, limit: int = DEFAULT_LIMIT) -> list[ConsumerRecord]:
    """The records of a batch, which was checked; KafkaError if they cannot be read."""
    if isinstance(batch, RecordBatch) and has_usual_numbers(batch):
        records: list[ConsumerRecord] = []
        data = batch.uncompressed(limit)
        try:
            if _quickly(data, batch, topic, partition, records.append) == len(data):
                return records
        except (_Unusual, IndexError, VarintError):
            pass
    return [
        ConsumerRecord(topic, partition, it.offset, it.timestamp, it.timestamp_type, it.key, it.value, it.headers)
        for it in batch.records(limit)
    ]


def has_usual_numbers(batch: RecordBatch) -> bool:
    """Whether offsets and timestamps are far from where 64 bits end, so that adding to them needs no check."""
    return (
        -USUAL_TIME <= batch.base_timestamp <= USUAL_TIME
        and -USUAL_TIME <= batch.max_timestamp <= USUAL_TIME
        and batch.base_offset + batch.last_offset_delta <= MAX_INT64
    )


def _quickly(data: bytes, batch: RecordBatch, topic: str, partition: int, add: Callable[[ConsumerRecord], None]) -> int:
    """Where the records end. Numbers are in zigzag: an even one stands for its half, an odd one for a negative."""
    base_offset, base_timestamp, last_delta = batch.base_offset, batch.base_timestamp, batch.last_offset_delta << 1
    append_time = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME_BIT else None
    timestamp_type, new, kind, start = batch.timestamp_type, tuple.__new__, ConsumerRecord, 0
    for _ in range(batch.records_count):
        if (size := data[start]) < 0x80:  # the record's; a third byte makes for an end that no record has
            end, place = start + END_AFTER_ONE[size], start + 2  # 1: the attributes
        else:
            end, place = start + END_AFTER_TWO[size] + (data[start + 1] << 6), start + 3
        if (step := data[place]) >= 0x80:
            step, place = step + (data[place + 1] << 7) - 0x80, place + 1
            if step >= 0x4000:
                step, place = _time_step(data, place - 1)
        place += 1
        if (delta := data[place]) >= 0x80:
            delta, place = delta + (data[place + 1] << 7) - 0x80, place + 1
            if delta >= 0x4000:
                delta, place = delta + (data[place + 1] << 14) - 0x4000, place + 1
        place += 1
        if (key_size := data[place]) >= 0x80:
            key_size, place = key_size + (data[place + 1] << 7) - 0x80, place + 1
        place += 1
        key = None if key_size == NULL else data[place : (place := place + (key_size >> 1))]
        if (size := data[place]) >= 0x80:
            size, place = size + (data[place + 1] << 7) - 0x80, place + 1
        place += 1
        value = None if size == NULL else data[place : (place := place + (size >> 1))]
        if data[place]:
            headers, place = _headers(data, place)
        else:
            headers, place = (), place + 1
        if place != end or delta > last_delta or delta & 1:
            raise _Unusual
        if (key_size & 1 and key is not None) or (size & 1 and value is not None):
            raise _Unusual
        timestamp = base_timestamp + (step >> 1 ^ -(step & 1)) if append_time is None else append_time
        add(new(kind, (topic, partition, base_offset + (delta >> 1), timestamp, timestamp_type, key, value, headers)))
        start = end
    return start


def _time_step(data: bytes, position: int) -> tuple[int, int]:
    """A number of several bytes, in zigzag still, and where its last byte is."""
    number, end = read_varint(data, position)
    if abs(number) > USUAL_TIME:
        raise _Unusual
    return number << 1 ^ number >> 63, end - 1


def _headers(data: bytes, position: int) -> tuple[tuple[Header, ...], int]:
    count, position = read_varint(data, position)
    try:
        return decode_headers(data, position, count)
    except (KafkaError, UnicodeDecodeError) as error:
        raise _Unusual from error
