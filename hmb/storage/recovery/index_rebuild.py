"""Rebuilding damaged indexes of a segment while clients read it.

The disk or another process may damage an index. An entry of the offset index contains the position of a batch
and the last offset of this batch. (Kafka may write the last offset of a later batch.) A reader compares the
entry with the batch at this position. The index is damaged if no batch begins there, or if the last offset of
the batch is greater than the offset in the entry. The broker then builds a new offset index and a new time
index from the headers of the batches:
    .log               [ 8021..8030 ][ 8031..8040 ] ...    the broker reads all headers
    .index.rebuilt     the broker writes all new entries at once
    .index             the broker renames the new file to this name

Clients can read and append records while the broker rebuilds the indexes. The reader that has found the damage does not
use the index, and scans the segment from its start. If a producer appends batches during the rebuild, the new indexes
may lack entries for these batches. A missing entry causes no error. A later reader only has to scan more of the
segment.

Source: Kafka's `LogSegment.recover`, which rebuilds indexes only when a broker starts.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from hmb.storage.files.sorted_entries import IndexFile

if TYPE_CHECKING:  # A real import would be circular: segment.py imports this module.
    from hmb.storage.segment import Segment

LOGGER = logging.getLogger(__name__)
REBUILT = ".rebuilt"  # suffix of the new files' names until the rebuild is complete


def rebuild_indexes(segment: Segment, index: IndexFile, why: str) -> None:
    """Rebuild the offset index and the time index of `segment`, because one of the two, `index`, is damaged.

    If another thread is already rebuilding these indexes, do nothing. Raises KafkaError if the log is damaged.
    """
    if not segment.rebuilding.acquire(blocking=False):
        return
    try:
        LOGGER.error("%s is damaged: %s; the broker builds it again from the log", index.path, why)
        fresh = type(segment)(segment.path.parent, segment.base_offset, segment.config, suffix=REBUILT)
        with fresh.indexes_recreated():
            for position, batch in segment.batches(0, segment.size):
                fresh.index_batch(batch.last_offset, position, batch.size, batch.max_timestamp, batch.last_offset)
        fresh.time_index.append(segment.max_timestamp, segment.offset_of_max_timestamp)
        fresh.offset_index.file.rename(segment.offset_index.path)
        fresh.time_index.file.rename(segment.time_index.path)
        segment.offset_index, segment.time_index = fresh.offset_index, fresh.time_index
    except OSError as error:
        LOGGER.error("%s: %s; look-ups scan the log until the broker's next start", index.path, error)
    finally:
        segment.rebuilding.release()
