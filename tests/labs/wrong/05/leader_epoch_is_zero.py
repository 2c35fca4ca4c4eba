"""A wrong answer to lab 5: the partition leader epoch is 0 instead of -1."""

import struct

from hmb.records import crc32c


def varint(number):
    rest = (number << 1) ^ (number >> 31)  # the zigzag form of the number
    encoded = bytearray()
    while rest > 127:
        encoded.append(rest & 127 | 128)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def _bytes(data):
    return varint(-1) if data is None else varint(len(data)) + data


def record(offset_delta, key, value):
    body = b"\0" + varint(0) + varint(offset_delta) + _bytes(key) + _bytes(value) + varint(0)
    return varint(len(body)) + body


def batch(records, timestamp):
    after_crc = struct.pack(">hiqqqhii", 0, len(records) - 1, timestamp, timestamp, -1, -1, -1, len(records))
    after_crc += b"".join(record(delta, key, value) for delta, (key, value) in enumerate(records))
    after_length = struct.pack(">ibI", 0, 2, crc32c(after_crc)) + after_crc
    return struct.pack(">qi", 0, len(after_length)) + after_length


def _string(text):
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def produce(topic, records, correlation_id):
    header = struct.pack(">hhi", 0, 3, correlation_id) + _string("lab")
    partition = struct.pack(">ii", 0, len(records)) + records
    topics = struct.pack(">i", 1) + _string(topic) + struct.pack(">i", 1) + partition
    message = header + struct.pack(">hhi", -1, 1, 30_000) + topics
    return struct.pack(">i", len(message)) + message
