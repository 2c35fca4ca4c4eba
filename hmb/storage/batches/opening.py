"""Opening batches: the checks before the broker reads the records of a batch.

A broker stores and sends batches without reading their records, and a client checks the CRC of the batches it gets. In
three cases the broker reads the records itself: it searches for a timestamp, it compacts a log, or it converts records
for an old client. A disk may have changed a bit since the append. A batch that is written again gets a new CRC, and
after that nobody could find the damage. So the broker checks the CRC first in each of these cases. When it finds a
damaged batch for the first time, it logs the file, the position and the offsets.

Reading the records of a compressed batch takes up to `max.decompressed.message.bytes` of memory. So only a few threads
do that at the same time, and many requests together need no more memory than a few of them.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from hmb.protocol.errors import KafkaError
from hmb.records import Batch, RecordBatch

if TYPE_CHECKING:
    from hmb.storage.segment import Segment

LOGGER = logging.getLogger(__name__)

# Each is held while the records of a batch are read for one purpose, so that clients with one purpose do not keep those
# with another one waiting. No other lock is taken under them, and nobody waits for a client under them.
PREPARING, SEARCHING, CONVERTING = (threading.BoundedSemaphore(2) for _ in range(3))


def checked(segment: Segment, position: int, batch: Batch) -> Batch:
    """Return a batch that was read whole from this position of a segment.

    Raises CORRUPT_MESSAGE where its bytes are damaged, and reports the damage once.
    """
    try:
        batch.check()
    except KafkaError as error:
        report_damage(segment, position, batch, error)
        raise
    return batch


def report_damage(segment: Segment, position: int, batch: Batch, error: KafkaError) -> None:
    """Name a batch that cannot be read in the broker's log, the first time that it is found."""
    if position not in segment.reported_damage:
        segment.reported_damage.add(position)
        # The first offset of a compressed message is inside of it, where nothing can be believed.
        first = f"{batch.base_offset} to" if isinstance(batch, RecordBatch) else "up to"
        LOGGER.error(
            "%s, position %d, offsets %s %d: %s", segment.path, position, first, batch.last_offset, error.message
        )
