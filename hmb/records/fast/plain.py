"""The tables and the exception that all fast decoders use. The tables contain lengths of records.

A record begins with its length as a varint in zigzag. A length of at most 63 has one byte, and a length of at most 8191
has two bytes. A look-up in a table by the first byte is faster than decoding the varint.

For example, a record of 20 bytes begins with the byte 0x28 (40, zigzag for 20). `END_AFTER_ONE[0x28]` is 21: the length
itself has 1 byte, and 20 bytes follow.
"""

from __future__ import annotations

from hmb.records.batch import RecordBatch
from hmb.records.record import MAX_INT64

NULL = 1  # the encoded varint -1, which stands for a missing key or value
SIGN_BIT = 1  # In zigzag, the lowest bit of the first byte is 1 if the number is negative.
NEVER = -MAX_INT64
# END_AFTER_ONE maps the first byte of a record, which is also the first byte of its length, to the record's end
# relative to its start. END_AFTER_TWO is for lengths of two bytes: 64 times the second byte must be added. An odd byte
# means a negative length: then the table contains a number far below 0, so no end matches.
END_AFTER_ONE = tuple(NEVER if byte & 1 else (byte >> 1) + 1 for byte in range(128))
END_AFTER_TWO = tuple(NEVER if byte & 1 else (byte >> 1 & 0x3F) + 2 for byte in range(256))

MAX_PLAIN_TIMESTAMP = MAX_INT64 // 2  # ms; the sum of two such timestamps fits into 64 bits


class NotPlainError(Exception):
    """A fast decoder cannot read these records. They may be damaged, or only unusual."""


def has_plain_numbers(batch: RecordBatch) -> bool:
    """Return whether each sum of a delta and the batch's offset or timestamp fits into 64 bits."""
    return (
        -MAX_PLAIN_TIMESTAMP <= batch.base_timestamp <= MAX_PLAIN_TIMESTAMP
        and -MAX_PLAIN_TIMESTAMP <= batch.max_timestamp <= MAX_PLAIN_TIMESTAMP
        and batch.base_offset + batch.last_offset_delta <= MAX_INT64
    )
