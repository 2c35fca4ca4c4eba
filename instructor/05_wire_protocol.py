"""One correct answer to the second exercise of lab 5: a decoder of bytes that may be wrong."""

import struct

from hmb.records import crc32c

HEADER = 61


class FrameReader:
    def __init__(self, limit):
        self.limit = limit
        self.rest = b""  # the bytes of the incomplete frame

    def feed(self, chunk):
        self.rest += chunk
        frames = []
        while len(self.rest) >= 4:
            (length,) = struct.unpack_from(">i", self.rest)
            if not 0 <= length <= self.limit:
                raise ValueError(f"a frame of {length} bytes")
            if len(self.rest) < 4 + length:
                break
            frames.append(self.rest[4 : 4 + length])
            self.rest = self.rest[4 + length :]
        return frames


def read_varint(data, position):
    number = 0
    for shift in range(0, 35, 7):
        if position >= len(data):
            raise ValueError("a varint is incomplete")
        byte = data[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return (number >> 1) ^ -(number & 1), position
    raise ValueError("a varint has more than 5 bytes")


def _read_bytes(data, position):
    length, position = read_varint(data, position)
    if length == -1:
        return None, position
    if not 0 <= length <= len(data) - position:
        raise ValueError(f"a length of {length} bytes")
    return data[position : position + length], position + length


def read_batch(data):
    if len(data) < HEADER or struct.unpack_from(">i", data, 8)[0] != len(data) - 12:
        raise ValueError("the batch is incomplete, or bytes are left over")
    if crc32c(data[21:]) != int.from_bytes(data[17:21], "big"):
        raise ValueError("the CRC is wrong")
    (base_offset,), (count,) = struct.unpack_from(">q", data), struct.unpack_from(">i", data, 57)
    records, position = [], HEADER
    for _ in range(count):
        length, begin = read_varint(data, position)
        _, position = read_varint(data, begin + 1)  # the timestamp delta, after one byte with attributes
        delta, position = read_varint(data, position)
        key, position = _read_bytes(data, position)
        value, position = _read_bytes(data, position)
        headers, position = read_varint(data, position)
        if headers != 0 or position != begin + length:
            raise ValueError("the length of a record is wrong")
        records.append((base_offset + delta, key, value))
    if position != len(data):
        raise ValueError("bytes are left over after the last record")
    return records
