"""A wrong answer to lab 12: `expired` includes the active segment in the number of segments to delete."""

import struct
import zlib

HEADER = struct.Struct(">iI")


def expired(segments, now, retention):
    count = 0
    while count < len(segments) and segments[count] < now - retention:
        count += 1
    return count


def compact(records, now, delete_retention):
    last = {record[1]: record[0] for record in records}
    kept = []
    for offset, key, value, timestamp in records:
        is_last_of_log = offset == records[-1][0]
        is_last_of_key = key is not None and last[key] == offset
        is_old_tombstone = value is None and timestamp < now - delete_retention
        if is_last_of_log or (is_last_of_key and not is_old_tombstone):
            kept.append((offset, key, value, timestamp))
    return kept


def recover(data):
    payloads, position = [], 0
    while position + HEADER.size <= len(data):
        length, crc = HEADER.unpack_from(data, position)
        position += HEADER.size
        if length < 0 or position + length > len(data):
            break
        payload = bytes(data[position : position + length])
        if zlib.crc32(payload) != crc:
            break
        payloads.append(payload)
        position += length
    return payloads
