"""Looking into batches v2 at the speed that compaction needs: a gigabyte holds ten million small records.

Nearly all batches are *plain*: of up to 8192 records none is missing, so that record number n has the offset delta n;
each has a key of up to 63 bytes, is itself no longer than 8 KB, and was made within months of the first.  Then all the
varints in front of the value have one or two bytes, but for the timestamp delta, and the way to the key is a handful of
steps that need no call and no object but the key.

These functions take what they see as it is; whatever is not plain they leave to `raw_records` (filtering.py), which
also says what is wrong with a record that lies about itself.
"""

from hmb.records.record import MAX_INT64
from hmb.records.varint import read_varint

_NEVER = -MAX_INT64
# By a record's first byte: its end, counted from its start.  Of a length of two bytes the second one, times 64, comes
# on top.  A negative length, which is odd, ends far in front of the data: no key fits into such a record.
_END_AFTER_ONE = tuple(_NEVER if byte & 1 else (byte >> 1) + 1 for byte in range(128))
_END_AFTER_TWO = tuple(_NEVER if byte & 1 else (byte >> 1 & 0x3F) + 2 for byte in range(256))
_LONGEST_DELTA = 5  # bytes of a timestamp delta: up to half a year
_MOST_RECORDS = 1 << 13  # whose offset deltas have two bytes


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
                end, position = start + _END_AFTER_ONE[byte], start + 2  # 1: the attributes
            else:
                second = data[start + 1]
                if second >= 0x80:
                    return None
                end, position = start + _END_AFTER_TWO[byte] + (second << 6), start + 3
            if data[position] >= 0x80:  # the timestamp delta
                limit = position + _LONGEST_DELTA
                while data[position] >= 0x80:
                    position += 1
                if position >= limit:
                    return None
            if number < 64:
                if data[position + 1] != number << 1:
                    return None
                position += 2
            else:
                if data[position + 1] != (number << 1 & 0x7F | 0x80) or data[position + 2] != number >> 6:
                    return None
                position += 3
            size = data[position]
            if size & 0x81:  # longer, or no key
                return None
            start = position + 1 + (size >> 1)
            note(data[position + 1 : start])
            if start >= end:  # at least the value's length follows
                return None
            start = end
    except IndexError:
        return None
    return keys if start == len(data) else None


def skip_records(data: bytes, position: int, count: int) -> int:
    """The position behind `count` records, which have been looked at before."""
    for _ in range(count):
        byte = data[position]
        if byte < 0x80:
            position += (byte >> 1) + 1
        elif (second := data[position + 1]) < 0x80:
            position += (byte >> 1 & 0x3F) + (second << 6) + 2
        else:
            length, position = read_varint(data, position)
            position += length
    return position
