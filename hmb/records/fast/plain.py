"""Tables in which the fast decoders look up where a record ends, and the exception `NotPlainError`.

A record begins with its length, which is a varint. A length of 0 to 63 takes one byte, and a length of 64 to 8191 takes
two bytes. To find the end of a record, the decoders look up the first byte in a table. This is faster than decoding the
varint.

For each possible first byte of a record, the table `END_AFTER_ONE` contains the distance (bytes) from the start of the
record to its end. For example, a record has the length 20. The zigzag rule doubles this number, so the first byte of
the record is 40, or 0x28. `END_AFTER_ONE[0x28]` is 21, because the length itself has 1 byte, and 20 bytes follow.
"""

from __future__ import annotations

from hmb.protocol.enums import INT64_MAX
from hmb.records.batch import RecordBatch

NULL = 1  # A missing key or value has the length -1. The varint of -1 is the byte 1.
SIGN_BIT = 1  # If a number is negative, this bit is set in the first byte of its varint.
# A record begins with its length, a varint. An odd first byte means a negative length, so the record is damaged. For an
# odd first byte, the tables END_AFTER_ONE and END_AFTER_TWO contain NEVER. If a decoder adds NEVER to the start of a
# record, the end is far below 0, and the decoder notices the damage.
NEVER = -INT64_MAX
# If the length of a record has one byte, this byte is twice the length (zigzag encoding). For example, the byte 20
# means a length of 10. END_AFTER_ONE[20] is 11, the size of the whole record: one byte for the length, and 10 bytes
# after it.
END_AFTER_ONE = tuple(NEVER if byte & 1 else (byte >> 1) + 1 for byte in range(128))
# If the length of a record has two bytes, A and B, the whole record has END_AFTER_TWO[A] + 64 * B bytes. For example,
# the length is 100. Zigzag encoding doubles this number to 200, and 200 is encoded as the bytes 0xC8 and 0x01.
# END_AFTER_TWO[0xC8] is 38, and 38 + 64 * 1 is 102: 2 bytes for the length, and 100 bytes after it.
END_AFTER_TWO = tuple(NEVER if byte & 1 else (byte >> 1 & 0x3F) + 2 for byte in range(256))
# If a record's length has two bytes, A and B, the record has END_AFTER_TWO[A] + AFTER_SECOND[B] bytes. AFTER_SECOND[B]
# is 64 * B if B is at most 127. If B is greater, the length has a third byte, and AFTER_SECOND[B] is NEVER.
AFTER_SECOND = tuple(NEVER if byte & 0x80 else byte << 6 for byte in range(256))

MAX_PLAIN_TIMESTAMP = INT64_MAX // 2  # ms; twice this number fits into 64 bits


class NotPlainError(Exception):
    """The error for records that a fast decoder cannot decode: the records are damaged, or valid but unusual."""


def has_plain_numbers(batch: RecordBatch) -> bool:
    """Return True if every offset and timestamp in the batch fits into 64 bits.

    An offset is the base offset plus a delta. A timestamp is the base timestamp plus a delta.
    """
    return (
        -MAX_PLAIN_TIMESTAMP <= batch.base_timestamp <= MAX_PLAIN_TIMESTAMP
        and -MAX_PLAIN_TIMESTAMP <= batch.max_timestamp <= MAX_PLAIN_TIMESTAMP
        and batch.base_offset + batch.last_offset_delta <= INT64_MAX
    )
