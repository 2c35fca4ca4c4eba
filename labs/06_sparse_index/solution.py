"""One correct answer to lab 6: look-ups in a sparse index."""

import struct

ENTRY = struct.Struct(">ii")
LAST_OFFSET_DELTA = 23
HEADER = 61


def read_index(data, base_offset):
    return [(base_offset + relative, position) for relative, position in ENTRY.iter_unpack(data)]


def lookup(entries, offset):
    # Each entry is a pair (offset, position). During the loop, all offsets in `entries[:low]` are at or below the
    # wanted offset, and all in `entries[high:]` are above it.
    low, high = 0, len(entries)
    while low < high:
        middle = (low + high) // 2
        if entries[middle][0] <= offset:
            low = middle + 1
        else:
            high = middle
    return entries[low - 1][1] if low else 0


def _header(log, position):
    """Return (first offset, last offset, end position) of the batch at `position`, or None for an incomplete batch."""
    if position < 0 or position + HEADER > len(log):
        return None
    first, length = struct.unpack_from(">qi", log, position)
    (delta,) = struct.unpack_from(">i", log, position + LAST_OFFSET_DELTA)
    end = position + 12 + length
    return (first, first + delta, end) if length >= HEADER - 12 and end <= len(log) else None


def find_batch(log, position, offset):
    while (header := _header(log, position)) is not None:
        first, last, end = header
        if first <= offset <= last:
            return position
        position = end
    return None


def wrong_entries(log, entries):
    starts, position = {}, 0
    while (header := _header(log, position)) is not None:
        _, last, end = header
        starts[position] = last
        position = end
    return [number for number, (offset, position) in enumerate(entries) if starts.get(position) != offset]
