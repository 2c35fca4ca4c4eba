"""One record: what a producer sends and a consumer gets.

Inside a record batch v2 (KIP-98) a record is written relative to its batch, in varints, so that a small record has a
few bytes of overhead where a v0 message has 26::

    varint length             of all that follows
    int8   attributes         unused
    varint timestamp delta    to the batch's base timestamp
    varint offset delta       to the batch's base offset
    varint key length, key        -1: no key
    varint value length, value    -1: no value (a tombstone on a compacted topic)
    varint number of headers, each: varint key length, key (UTF-8), varint value length (-1: null), value (KIP-82)

Messages v0 and v1 have a layout of their own, in `message_set`; they yield the same `Record`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records.varint import VARINTS, VarintError, read_varint

Header = tuple[str, bytes | None]
NO_TIMESTAMP = -1
MAX_INT64 = 2**63 - 1


class TimestampType(IntEnum):
    """Who set the timestamp (KIP-32): bit 3 of the attributes. Messages v0 have none."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1

    @property
    def label(self) -> str:
        """As Kafka's tools write it: NoTimestampType, CreateTime, LogAppendTime."""
        return self.name.title().replace("_", "")


@dataclass(slots=True)
class Record:
    """A record with its absolute offset and timestamp (ms since 1970; -1: none)."""

    offset: int = -1
    timestamp: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()
    timestamp_type: TimestampType = TimestampType.CREATE_TIME


def encode_records(records: Iterable[Record], base_offset: int | None, base_timestamp: int) -> bytearray:
    """Return the records of a batch, uncompressed; their offset deltas are 0, 1, 2 ... if `base_offset` is None."""
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
    """Encode one more record."""
    body = b"".join(
        (
            b"\x00",
            VARINTS[timestamp_delta],
            VARINTS[offset_delta],
            b"\x01" if key is None else VARINTS[len(key)] + key,  # 01 is the varint -1
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
    data: bytes,
    count: int,
    base_offset: int,
    last_offset_delta: int,
    base_timestamp: int,
    log_append_time: int | None,
) -> Iterator[Record]:
    """The `count` records that fill `data`; INVALID_RECORD if they do not fill it exactly, or lie about themselves."""
    if base_offset + last_offset_delta > MAX_INT64:
        raise _invalid(f"no batch starts at offset {base_offset} and has {last_offset_delta} more")
    timestamp_type = TimestampType.CREATE_TIME if log_append_time is None else TimestampType.LOG_APPEND_TIME
    position = 0
    try:
        for _ in range(count):
            start = position
            length, position = read_varint(data, position)
            end = position + length
            timestamp_delta, position = read_varint(data, position + 1)  # 1: the attributes
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
                raise _invalid(f"the record at {start} of its batch claims {length} bytes and does not fill them")
            timestamp = base_timestamp + timestamp_delta if log_append_time is None else log_append_time
            if not (0 <= offset_delta <= last_offset_delta and -MAX_INT64 <= timestamp <= MAX_INT64):
                raise _invalid(f"the record at {start} of its batch has an offset or a timestamp outside of it")
            yield Record(base_offset + offset_delta, timestamp, key, value, headers, timestamp_type)
    except (IndexError, VarintError, UnicodeDecodeError) as error:
        raise _invalid(f"the record at {start} of its batch cannot be read: {error}") from error
    if position != len(data):
        raise _invalid(f"{len(data) - position} bytes are left behind the {count} records of the batch")


def decode_headers(data: bytes, position: int, count: int) -> tuple[tuple[Header, ...], int]:
    if not 0 < count <= len(data) - position:
        raise _invalid(f"a record claims {count} headers")
    headers: list[Header] = []
    for _ in range(count):
        size, position = read_varint(data, position)
        if size < 0:
            raise _invalid("a record header has no key")
        key = data[position : (position := position + size)].decode()
        size, position = read_varint(data, position)
        headers.append((key, None if size < 0 else data[position : (position := position + size)]))
    return tuple(headers), position


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, why)
