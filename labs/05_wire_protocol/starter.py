"""The beginning of your answer to lab 5: an encoder of Kafka's protocol.

Complete `answer.py`, and check it with `hmb lab check 5`.
"""

import struct

from hmb.records import crc32c


def varint(number):
    """Encode `number` as a varint.

    First, zigzag maps 0, -1, 1 to 0, 1, 2. Each byte then gets 7 bits of the result, the lowest bits first. The
    highest bit of a byte shows whether another byte follows.
    """
    return b""


def record(offset_delta, key, value):
    """Encode one record of a batch."""
    return b""


def batch(records, timestamp):
    """Encode a record batch. `records` is a list of pairs of key and value."""
    after_crc = struct.pack(">hiqqqhii", 0, len(records) - 1, timestamp, timestamp, -1, -1, -1, len(records))
    return crc32c(after_crc).to_bytes(4, "big")  # This is only a CRC, and not a batch yet.


def produce(topic, records, correlation_id):
    """Return the frame of a Produce request in version 3, for partition 0 of a topic."""
    return b""
