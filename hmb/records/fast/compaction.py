"""Finds the keys in a batch, and the bytes of the records to keep: a fast decoder for compaction.

Compaction reads the key of every record. One gigabyte of a log can contain ten million records, so this module
must decode them fast. It decodes only *plain* batches. Nearly all batches are plain. A plain batch has these
properties:
- It has at most 8192 records, and compaction has not removed any of them. So the offset deltas of the records
  are 0, 1, 2 and so on.
- Each record has at most 8191 bytes after its length field, and a key of at most 63 bytes.
- The timestamp of each record differs from the timestamp of the first record by at most about half a year.

A record begins with five numbers, such as its length, and the key follows. In a plain batch, each of these
numbers has one or two bytes. Only the timestamp delta can be longer. So the decoder skips the numbers in a few
steps, without a function call. The key is the only `bytes` object that it creates.

If the function `plain_keys` or `plain_parts` cannot decode a batch, it returns None. The caller then uses the function
`raw_records`, which is slower, but decodes every valid batch. If the batch is damaged, `raw_records` raises an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hmb.protocol.enums import INT64_MAX
from hmb.records.fast.plain import END_AFTER_ONE, END_AFTER_TWO, NEVER, SIGN_BIT
from hmb.records.varint import read_varint

# In a record, the length of the key comes directly before the key. A length of 0 to 63 takes one byte, and this byte is
# twice the length (zigzag encoding).
#
# _KEY_END maps a key's length byte to the key's size plus 1 (for this byte). For example, zigzag encoding stores the
# length 5 as the byte 2 * 5 = 10. So _KEY_END[10] is 5 + 1 = 6.
#
# If the key is missing, the first byte of its length is odd. If the key has more than 63 bytes, the bit 0x80 of this
# byte is set. In both cases, _KEY_END contains a very large number, so `plain_keys` returns None.
_KEY_END = tuple(INT64_MAX >> 1 if byte & 0x81 else (byte >> 1) + 1 for byte in range(256))
_MAX_RECORDS = 1 << 13  # maximum number of records in a batch; the offset deltas then have at most two bytes
# The lowest bit of a varint is the sign, so a varint stores an offset delta n as 2n. _LOW_BITS contains the byte 2n for
# each n from 0 to 63 (included).
_LOW_BITS = tuple(number << 1 for number in range(64))
# _FIRST_BYTES[n] is the first byte of the varint for the offset delta n. It contains the lowest seven bits of 2n, which
# are the same for n and n + 64. If n is at least 64, a second byte follows, so the bit 0x80 is set. For example,
# _FIRST_BYTES[1] is 0x02, and _FIRST_BYTES[65] is 0x82.
_FIRST_BYTES = _LOW_BITS + tuple(0x80 | bits for bits in _LOW_BITS) * (_MAX_RECORDS // 64 - 1)
_MAX_DELTA_SIZE = 5  # maximum size (bytes) of a timestamp delta; 5 bytes are enough for half a year


def plain_keys(data: bytes, count: int) -> list[bytes] | None:
    """Return the keys of all records in a batch, or None if this fast function cannot decode the batch.

    `data` contains the uncompressed records of the batch, and `count` is their number. The batch must still contain
    all records that the producer put into it. The function decodes only plain batches, whose keys and records are
    short (see the docstring of the module).
    """
    if count > _MAX_RECORDS:
        return None
    keys: list[bytes] = []
    add_key, start = keys.append, 0
    try:
        for number in range(count):
            byte = data[start]
            if byte < 0x80:
                end, position = start + END_AFTER_ONE[byte], start + 2  # + 2 skips the length and the attributes.
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
            if start >= end:  # No byte is left for the length of the value.
                return None
            add_key(data[position + 1 : start])
            start = end
    except IndexError:
        return None
    return keys if start == len(data) else None


class Parts(NamedTuple):
    """The records that compaction keeps from a batch, and the values for the header of the new batch."""

    records: Sequence[bytes | memoryview]  # each element contains one or more records
    records_count: int
    newest: int  # the greatest timestamp delta of these records (ms)
    has_tombstones: bool


def plain_parts(data: bytes, numbers: Sequence[int]) -> Parts | None:
    """Return the bytes of the records with these numbers, or None if they need a slower decoder.

    `numbers` is in ascending order and not empty. The first record of the batch has the number 0. The function
    returns None in three cases:

    - A number is 8192 or greater.
    - A selected record has a key of more than 63 bytes.
    - A selected record, or any record before it, has more than 8191 bytes after its length field.

    The caller must already have decoded the batch with `plain_keys` or `raw_records`. Each selected record must
    have a key. The batch must still contain all records that the producer put into it.
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
        delta, position = read_varint(data, begin + (2 if byte < 0x80 else 3))  # skips length and attributes
        if delta > newest:
            newest = delta
        position += 1 if number < 64 else 2
        if data[position] >= 0x80:
            return None
        if data[position + _KEY_END[data[position]]] & SIGN_BIT:
            has_tombstones = True
    return Parts(records, len(records), newest, has_tombstones)
