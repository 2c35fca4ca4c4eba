"""Finds the keys and the bytes of the records of plain batches, fast enough for compaction.

Compaction reads the key of every record, and one gigabyte of a log may hold ten million records. Nearly all batches
are *plain*:

- A plain batch has all its records, at most 8192. So record number n has the offset delta n.
- Each of its records is at most 8 KB long and has a key of at most 63 bytes.
- The timestamp of each record differs by at most some months from the timestamp of the first record.

In a plain batch each varint before the value has one or two bytes, except the timestamp delta. A decoder therefore
finds the key in a few steps, without a call and without any object except the key.

Batches that are not plain are read by `raw_records`, which also reports damage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hmb.records.fast.plain import END_AFTER_ONE, END_AFTER_TWO, NEVER, SIGN_BIT
from hmb.records.record import MAX_INT64
from hmb.records.varint import read_varint

# This table maps the first byte of a key's length to the key's end, relative to the position of the length. If a record
# has no key, or its key is longer than 63 bytes, the table contains a number so large that it exceeds every record.
_KEY_END = tuple(MAX_INT64 >> 1 if byte & 0x81 else (byte >> 1) + 1 for byte in range(256))
_MAX_RECORDS = 1 << 13  # limit for a plain batch: an offset delta has at most two bytes
# This table maps an offset delta to its six low bits, at their position in the first byte of a varint. The caller adds
# 0x80 if a second byte follows.
_LOW_BITS = tuple(number << 1 for number in range(64))
_FIRST_BYTES = _LOW_BITS + tuple(0x80 | bits for bits in _LOW_BITS) * (_MAX_RECORDS // 64 - 1)
_MAX_DELTA_SIZE = 5  # bytes of a timestamp delta, enough for half a year


def plain_keys(data: bytes, count: int) -> list[bytes] | None:
    """Return the keys of a batch's records, or None if the batch is not plain.

    The module explains what a plain batch is. `data` contains the uncompressed records of the batch, and `count` is
    their number. Compaction has not removed any of them.
    """
    if count > _MAX_RECORDS:
        return None
    keys: list[bytes] = []
    add_key, start = keys.append, 0
    try:
        for number in range(count):
            byte = data[start]
            if byte < 0x80:
                end, position = start + END_AFTER_ONE[byte], start + 2  # 2 bytes: the length and the attributes
            else:
                if (second := data[start + 1]) >= 0x80:
                    return None
                end, position = start + END_AFTER_TWO[byte] + (second << 6), start + 3
            if data[position] >= 0x80:  # The timestamp delta has more than one byte.
                limit = position + _MAX_DELTA_SIZE
                while data[position] >= 0x80:
                    position += 1
                if position >= limit:
                    return None
            position += 1
            if data[position] != _FIRST_BYTES[number]:  # The offset delta is not `number`.
                return None
            if number >= 64:
                position += 1
                if data[position] != number >> 6:
                    return None
            position += 1
            start = position + _KEY_END[data[position]]
            if start >= end:  # The record ends before the length of its value.
                return None
            add_key(data[position + 1 : start])
            start = end
    except IndexError:
        return None
    return keys if start == len(data) else None


class Parts(NamedTuple):
    """Selected records of a batch, copied byte for byte, and the values that compaction writes into the new header."""

    records: Sequence[bytes | memoryview]  # each element holds one or more records
    records_count: int
    newest: int  # the greatest timestamp delta (ms)
    has_tombstones: bool


def plain_parts(data: bytes, numbers: Sequence[int]) -> Parts | None:
    """Return the records whose numbers are in `numbers` (ascending), or None if the records are not plain.

    The batch must have all its records, and the selected records must have keys. The caller has already read the batch
    with `plain_keys` or `raw_records`.
    """
    if numbers[-1] >= _MAX_RECORDS:
        return None
    records: list[bytes] = []
    start, next_number, newest, has_tombstones = 0, 0, NEVER, False
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
        delta, position = read_varint(data, begin + (2 if byte < 0x80 else 3))  # after the length and the attributes
        if delta > newest:
            newest = delta
        position += 1 if number < 64 else 2
        if data[position] >= 0x80:
            return None
        if data[position + _KEY_END[data[position]]] & SIGN_BIT:
            has_tombstones = True
    return Parts(records, len(records), newest, has_tombstones)
