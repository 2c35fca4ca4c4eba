"""Rebuilding damaged indexes of a segment while clients read it.

An entry of the offset index contains an offset and a position. A batch must begin at this position, and the
last offset of the batch must not be greater than the offset in the entry. For example, the batch at position
5000 has the offsets 8031 to 8040. An entry with offset 8040 and position 5000 is correct. With offset 8035, it
is wrong.

If a reader finds a wrong entry, the broker builds a new offset index and a new time index from the headers of
the batches:
    .log               [ 8021..8030 ][ 8031..8040 ] ...    the broker reads all headers
    .index.rebuilt     the broker writes all new entries at once
    .index             the broker renames the new file to this name

Clients can read and append records during the rebuild. The reader that has found the damage does not use the
index, and scans the segment from its start. The new indexes may lack entries for batches that are appended
during the rebuild. A missing entry causes no error: a later reader only scans more of the segment.

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
    """Rebuild the offset index and the time index of `segment`. The caller has found damage in `index`.

    If another thread is already rebuilding the indexes of `segment`, do nothing. Raises KafkaError if the log is
    damaged.
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
