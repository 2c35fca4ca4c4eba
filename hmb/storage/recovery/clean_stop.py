"""Finds the end of a segment after a clean stop of the broker, with the help of the segment's indexes.

When a broker stops properly, it syncs its logs and writes the file `.kafka_cleanshutdown`. At its next start,
the broker reads only the last batches of each segment (usually a few kilobytes), and checks whether these
batches match the segment's indexes. If they match, the broker need not check the rest of the segment.

For example, a segment has 12,000 bytes, and the last entry of its offset index is (offset 109, position 10000).
The broker reads only the last 2,000 bytes, which are two whole batches. The first batch ends at offset 109, so
it matches the entry. The second batch and the segment end at offset 119.

If a segment's last batches do not match its indexes, the broker checks the whole segment (scanning.py).

Source: Kafka's `LogLoader`, `OffsetIndex.sanityCheck`.
"""

from __future__ import annotations

from hmb.protocol.errors import corrupt_message
from hmb.records import NO_TIMESTAMP
from hmb.storage.batches.time_search import has_timestamp
from hmb.storage.segment import Segment

# An append adds an entry to the offset index only if it begins more than `index.interval.bytes` after the position in
# the last entry. This module assumes that an append has at most MAX_UNINDEXED (1,048,576) bytes.
#
# For example, `index.interval.bytes` is 4,096, and the last entry contains position 10,000. An append without an entry
# then ends at position 10,000 + 4,096 + 1,048,576 = 1,062,672 or before. If a batch begins after 1,062,672, the index
# probably lacks entries, so the broker checks the whole segment.
#
# This limit can be too small: an append can be larger, and after a restart, the broker counts the bytes since the last
# index entry from 0 again. The broker then checks a whole segment although its index is complete. The check only makes
# the start slower.
MAX_UNINDEXED = 1 << 20


def end_offset_from_indexes(segment: Segment) -> int:
    """Return the offset after the last batch of a segment, without reading the whole segment.

    The function reads the batches from the position of the last entry in the offset index. Raises KafkaError in
    these cases:

    - The offset index or the time index is missing, damaged or incomplete, or belongs to another log.
    - The log file does not end with a complete batch.
    - The last offset of a batch is not greater than that of the batch before it.

    Raises OSError if a file cannot be read.
    """
    for index in (segment.offset_index, segment.time_index):
        if not index.is_sane():
            raise corrupt_message(f"{index.path.name} is missing or damaged")
    entry, max_timestamp = segment.offset_index.last, segment.max_timestamp
    last, has_last = segment.time_index.last, False
    end_offset, size = segment.base_offset, entry.position
    for position, batch in segment.batches(entry.position, segment.size):
        if position == entry.position and position and batch.last_offset > entry.offset:
            raise corrupt_message(f"{segment.offset_index.path.name} is an index of another log")
        if position - entry.position > segment.config.index_interval_bytes + MAX_UNINDEXED:
            raise corrupt_message(f"{segment.offset_index.path.name} lacks entries")
        if batch.last_offset < end_offset:
            raise corrupt_message(f"position {position}: offsets go back")
        has_last |= end_offset <= last.offset <= batch.last_offset and batch.max_timestamp == last.timestamp
        end_offset, size = batch.last_offset + 1, position + batch.size
        max_timestamp = max(max_timestamp, batch.max_timestamp)
    if size != segment.size or (entry.position and end_offset <= entry.offset):
        raise corrupt_message(f"position {size} of {segment.size}: not a whole batch")
    has_last = has_last or last.timestamp == NO_TIMESTAMP or has_timestamp(segment, last)
    if max_timestamp != segment.max_timestamp or not has_last:
        why = f"{segment.time_index.path.name} is an index of another log, or lacks entries"
        raise corrupt_message(why)
    segment.first_timestamp = next((first.max_timestamp for _, first in segment.batches(0, segment.size)), None)
    return end_offset
