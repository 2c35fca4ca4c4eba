"""One record: its fields, and its layout inside a record batch.

A record in a batch (KIP-98) does not contain its absolute timestamp and offset. The record contains the differences to
the first record of the batch, as varints. So a small record takes only 7 bytes more than its key and value. (In the
oldest format, a message v0 takes 26 bytes more.) A record has this layout:
    varint length             number of bytes after this field
    int8   attributes         unused
    varint timestamp delta    timestamp - the batch's base timestamp
    varint offset delta       offset - the batch's base offset
    varint key length, key        -1: no key
    varint value length, value    -1: no value (a tombstone in a compacted topic)
    varint number of headers, each: varint key length, key (UTF-8), varint value length (-1: null), value (KIP-82)

For example, the second record of a batch has the key "k" and the value "ab". It was created 5 ms after the
first record. A varint stores each number from 0 to 63 as twice the number (the zigzag rule). The record has 9
bytes after its length field. The length field therefore contains 18, or 12 in hexadecimal. All bytes of the
record, in hexadecimal, are:
    12 | 00 | 0a | 02 | 02 6b | 04 61 62 | 00
    length 9, attributes, 5 ms, offset delta 1, key of 1 byte, value of 2 bytes, no headers

The folder `legacy` describes the layouts of messages v0 and v1, which are older than record batches. The decoders of
messages also return objects of the class `Record`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hmb.protocol.enums import INT64_MAX, NO_OFFSET, LabeledEnum
from hmb.protocol.errors import invalid_record
from hmb.records.varint import VARINTS, VarintError, read_varint

Header = tuple[str, bytes | None]
NO_TIMESTAMP = -1
MAX_RECORD_OVERHEAD = 5 + 1 + 10 + 5 + 5 + 5 + 1
"""The most bytes of a record without headers, besides its key and value.

The sum follows the layout above: the varints have at most 5 bytes, the timestamp delta has at most 10 bytes, and the
number 0 of headers has 1 byte.
"""


class TimestampType(LabeledEnum):
    """The kind of a record's timestamp (KIP-32).

    The producer sets a create time, and the broker sets a log append time.

    Bit 3 of a batch's attributes contains this value. Kafka's tools print the label, for example "CreateTime".
    """

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


@dataclass(slots=True)
class Record:
    """A decoded record, with its absolute offset.

    The timestamp is in ms since 1970, or -1 if the record has no timestamp.
    """

    offset: int = NO_OFFSET
    timestamp: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()
    timestamp_type: TimestampType = TimestampType.CREATE_TIME


def encode_records(records: Iterable[Record], base_offset: int | None, base_timestamp: int) -> bytearray:
    """Encode the records of a batch.

    If `base_offset` is None, the records get the offset deltas 0, 1, 2 and so on. If `base_offset` is a number, each
    offset delta is the record's offset minus `base_offset`.
    """
    encoded = bytearray()
    for index, record in enumerate(records):
        offset_delta = index if base_offset is None else record.offset - base_offset
        append_record(
            encoded, record.timestamp - base_timestamp, offset_delta, record.key, record.value, record.headers
        )
    return encoded


def append_record(
    encoded: bytearray,
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | memoryview | None,
    value: bytes | memoryview | None,
    headers: tuple[Header, ...],
) -> None:
    """Encode one record, and append its bytes to `encoded`. `timestamp_delta` is in ms."""
    body = b"".join(
        (
            b"\x00",
            VARINTS[timestamp_delta],
            VARINTS[offset_delta],
            b"\x01" if key is None else VARINTS[len(key)] + key,  # 01 is the varint for -1 (no key).
            b"\x01" if value is None else VARINTS[len(value)] + value,
            _encode_headers(headers) if headers else b"\x00",
        )
    )
    encoded += VARINTS[len(body)]
    encoded += body


def _encode_headers(headers: tuple[Header, ...]) -> bytes:
    parts = [VARINTS[len(headers)]]
    for name, value in headers:
        key = name.encode()
        parts += (VARINTS[len(key)], key)
        parts += (VARINTS[-1],) if value is None else (VARINTS[len(value)], value)
    return b"".join(parts)


def decode_records(
    data: bytes, count: int, base_offset: int, last_offset_delta: int, base_timestamp: int, log_append_time: int | None
) -> Iterator[Record]:
    """Decode the records of a batch. `data` contains the uncompressed records, and `count` is their number.

    If `log_append_time` (ms) is not None, all records get this timestamp. Raises INVALID_RECORD if `data` does not
    contain exactly `count` records, or if a length or an offset delta in a record is wrong.
    """
    if base_offset + last_offset_delta > INT64_MAX:
        raise invalid_record(f"no batch starts at offset {base_offset} and has {last_offset_delta} more")
    timestamp_type = TimestampType.CREATE_TIME if log_append_time is None else TimestampType.LOG_APPEND_TIME
    position = 0
    try:
        for _ in range(count):
            start = position
            length, position = read_varint(data, position)
            end = position + length
            timestamp_delta, position = read_varint(data, position + 1)  # + 1 skips the attributes.
            offset_delta, position = read_varint(data, position)
            size, position = read_varint(data, position)
            key = None if size < 0 else data[position : (position := position + size)]
            size, position = read_varint(data, position)
            value = None if size < 0 else data[position : (position := position + size)]
            header_count, position = read_varint(data, position)
            headers: tuple[Header, ...] = ()
            if header_count:
                headers, position = decode_headers(data, position, header_count)
            if position != end or end > len(data):
                why = f"claims {length} bytes and does not fill them"
                raise invalid_record(f"the uncompressed record at byte {start} {why}")
            timestamp = base_timestamp + timestamp_delta if log_append_time is None else log_append_time
            if not (0 <= offset_delta <= last_offset_delta and -INT64_MAX <= timestamp <= INT64_MAX):
                why = "has an offset or a timestamp outside of its batch"
                raise invalid_record(f"the uncompressed record at byte {start} {why}")
            yield Record(base_offset + offset_delta, timestamp, key, value, headers, timestamp_type)
    except (IndexError, VarintError, UnicodeDecodeError) as error:
        raise invalid_record(f"the uncompressed record at byte {start} cannot be read: {error}") from error
    if position != len(data):
        raise invalid_record(f"{len(data) - position} bytes are left after the {count} records of the batch")


def decode_headers(data: bytes, position: int, count: int) -> tuple[tuple[Header, ...], int]:
    """Decode `count` headers. Return the headers, and the position at which they end.

    Raises INVALID_RECORD, IndexError or VarintError if the headers are malformed.
    """
    if not 0 < count <= len(data) - position:
        raise invalid_record(f"a record claims {count} headers")
    headers: list[Header] = []
    for _ in range(count):
        size, position = read_varint(data, position)
        if size < 0:
            raise invalid_record("a record header has no key")
        key = data[position : (position := position + size)].decode()
        size, position = read_varint(data, position)
        headers.append((key, None if size < 0 else data[position : (position := position + size)]))
    return tuple(headers), position
