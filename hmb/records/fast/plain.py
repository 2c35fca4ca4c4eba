"""Tables in which the fast decoders look up where a record ends, and the exception `NotPlainError`.

A record begins with its length, which is a varint. A length of 0 to 63 takes one byte, and a length of 64 to 8191 takes
two bytes. To find the end of a record, the decoders look up the first byte in a table. This is faster than decoding the
varint.

If the length of a record has one byte, the table `END_AFTER_ONE` maps this byte to the size of the whole
record in bytes. For example, a record has the length 20. Varints store a positive number as twice its value
(zigzag encoding), so the first byte is 40. `END_AFTER_ONE[40]` is 21: one byte for the length, and 20 bytes
after it.
"""

from __future__ import annotations

from hmb.protocol.enums import INT64_MAX
from hmb.records.batch import RecordBatch

NULL = 1  # A missing key or value has the length -1. The varint of -1 is the byte 1.
SIGN_BIT = 1  # If a number is negative, this bit is set in the first byte of its varint.
# If the first byte of a record's length is odd, the length is negative, so the record is damaged. For odd bytes, the
# tables END_AFTER_ONE and END_AFTER_TWO contain NEVER. The computed end of the record is then far below 0, and the
# decoder notices the damage.
NEVER = -INT64_MAX
END_AFTER_ONE = tuple(NEVER if byte & 1 else (byte >> 1) + 1 for byte in range(128))
# If two bytes A and B store a record's length, the whole record has (A & 127) / 2 + 64 * B + 2 bytes, including A and
# B. END_AFTER_TWO[A] contains the sum without 64 * B, and the decoders add 64 * B. For example, the bytes 200 and 1
# store the length 100. END_AFTER_TWO[200] is 38, so the record has 38 + 64 = 102 bytes.
END_AFTER_TWO = tuple(NEVER if byte & 1 else (byte >> 1 & 0x3F) + 2 for byte in range(256))
# If two bytes A and B store a record's length, the record has END_AFTER_TWO[A] + AFTER_SECOND[B] bytes. AFTER_SECOND[B]
# is 64 * B. If B is at least 128, a third byte follows. AFTER_SECOND[B] is then NEVER, so the decoder stops.
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
