"""Looking into batches v2 at the speed that compaction needs: a gigabyte holds ten million small records.

Nearly all batches are *plain*: of up to 8192 records none is missing, so that record number n has the offset delta n;
each has a key of up to 63 bytes, is itself no longer than 8 KB, and was made within months of the first.  Then all the
varints in front of the value have one or two bytes, but for the timestamp delta, and the way to the key is a handful of
steps that need no call and no object but the key.

Whatever is not plain these functions leave to `raw_records` (filtering.py), which also says what is wrong with a record
that lies about itself.
"""

from collections.abc import Sequence
from typing import NamedTuple

from hmb.records.record import MAX_INT64
from hmb.records.varint import VARINTS, read_varint

NULL = 1  # the varint -1: no value
_NEVER = -MAX_INT64
# By a record's first byte: its end, counted from its start.  Of a length of two bytes the second one, times 64, comes
# on top.  A negative length, which is odd, ends far in front of the data: no key fits into such a record.
END_AFTER_ONE = tuple(_NEVER if byte & 1 else (byte >> 1) + 1 for byte in range(128))
END_AFTER_TWO = tuple(_NEVER if byte & 1 else (byte >> 1 & 0x3F) + 2 for byte in range(256))
# By the first byte of a key's length: the key's end, counted from there.  A longer one, or none, fits into no record.
_KEY_END = tuple(MAX_INT64 >> 1 if byte & 0x81 else (byte >> 1) + 1 for byte in range(256))
_MOST_RECORDS = 1 << 13  # whose offset deltas have two bytes
_FIRST_BYTES = tuple(VARINTS[number][0] for number in range(_MOST_RECORDS))
_LONGEST_DELTA = 5  # bytes of a timestamp delta: up to half a year


def plain_keys(data: bytes, count: int) -> list[bytes] | None:
    """The keys in the uncompressed records of a batch of which none is missing; None if it is not plain."""
    if count > _MOST_RECORDS:
        return None
    keys: list[bytes] = []
    note, start = keys.append, 0
    try:
        for number in range(count):
            byte = data[start]
            if byte < 0x80:
                end, position = start + END_AFTER_ONE[byte], start + 2  # 1: the attributes
            else:
                second = data[start + 1]
                if second >= 0x80:
                    return None
                end, position = start + END_AFTER_TWO[byte] + (second << 6), start + 3
            if data[position] >= 0x80:  # the timestamp delta
                limit = position + _LONGEST_DELTA
                while data[position] >= 0x80:
                    position += 1
                if position >= limit:
                    return None
            position += 1
            if data[position] != _FIRST_BYTES[number]:  # the offset delta
                return None
            if number >= 64:
                position += 1
                if data[position] != number >> 6:
                    return None
            position += 1
            start = position + _KEY_END[data[position]]
            if start >= end:  # at least the value's length follows
                return None
            note(data[position + 1 : start])
            start = end
    except IndexError:
        return None
    return keys if start == len(data) else None


class Parts(NamedTuple):
    """Some records of a batch, byte for byte, and what compaction must know of them."""

    records: Sequence[bytes | memoryview]  # one or more records each
    records_count: int
    newest: int  # the greatest timestamp delta (ms)
    has_tombstones: bool


def plain_parts(data: bytes, numbers: Sequence[int]) -> Parts | None:
    """Return the records with these ascending numbers, of a batch that has all its records; None if they are not plain.

    The records have keys, and `plain_keys` or `raw_records` has read the batch.
    """
    if numbers[-1] >= _MOST_RECORDS:
        return None
    records: list[bytes] = []
    start, next_number, newest, has_tombstones = 0, 0, _NEVER, False
    for number in numbers:
        for _ in range(next_number, number + 1):
            begin, byte = start, data[start]
            if byte < 0x80:
                start += END_AFTER_ONE[byte]
            elif data[start + 1] < 0x80:
                start += END_AFTER_TWO[byte] + (data[start + 1] << 6)
            else:
                return None
        records.append(data[begin:start])
        next_number = number + 1
        delta, position = read_varint(data, begin + (2 if byte < 0x80 else 3))  # 1: the attributes
        if delta > newest:
            newest = delta
        position += 1 if number < 64 else 2
        if data[position] >= 0x80:
            return None
        if data[position + _KEY_END[data[position]]] == NULL:
            has_tombstones = True
    return Parts(records, len(records), newest, has_tombstones)
