"""One correct answer to the second exercise of lab 6: a writer of indexes."""

import struct

ENTRY = struct.Struct(">ii")
HEADER = 61


def _batches(log):
    """Yield (position, last offset, end) for each complete batch of a log."""
    position = 0
    while position + HEADER <= len(log):
        first, length = struct.unpack_from(">qi", log, position)
        (delta,) = struct.unpack_from(">i", log, position + 23)
        end = position + 12 + length
        if length < HEADER - 12 or end > len(log):
            return
        yield position, first + delta, end
        position = end


def build_index(log, base_offset, interval):
    index, since = b"", 0  # `since` is the number of bytes since the newest entry
    for position, last, end in _batches(log):
        if since > interval:
            index += ENTRY.pack(last - base_offset, position)
            since = 0
        since += end - position
    return index


def truncate(log, index, base_offset, offset):
    ends = [end for _, last, end in _batches(log) if last < offset]
    kept = [entry for entry in ENTRY.iter_unpack(index) if base_offset + entry[0] < offset]
    return log[: ends[-1] if ends else 0], b"".join(ENTRY.pack(*entry) for entry in kept)
