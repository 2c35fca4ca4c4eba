"""Opening batches: the checks before the broker reads the records of a batch.

A broker stores and sends batches without reading their records. The client checks the CRC of each batch that it
receives. In three cases the broker itself reads the records: it searches for a timestamp, it compacts a log, or it
converts records for an old client. The disk may have changed a bit of a batch after the append. If the broker wrote the
damaged records into a new batch, the new batch would have a correct CRC, and nobody could find the damage any more. So
before the broker reads the records, it checks the CRC. When the broker finds a damaged batch for the first time, it
logs the file, the position and the offsets.

To read the records of a compressed batch, a thread needs up to `max.decompressed.message.bytes` of memory. To limit the
memory, only a few threads may read such batches at the same time.
"""

from __future__ import annotations

import logging
import threading

from hmb.protocol.errors import KafkaError
from hmb.records import Batch, RecordBatch
from hmb.storage.files.virtual import VirtualFile

LOGGER = logging.getLogger(__name__)

# Threads read the records of batches for three purposes, and each purpose has a semaphore. At most two threads may read
# records for the same purpose at the same time. A thread that holds a semaphore takes no other lock and waits for no
# client. A thread that waits for a semaphore needs no time limit, because the records of one batch are limited.
PREPARING, SEARCHING, CONVERTING = (threading.BoundedSemaphore(2) for _ in range(3))


class DamageReports:
    """Logs the damaged batches of one log file. Each damaged batch is logged once."""

    def __init__(self, file: VirtualFile) -> None:
        self._file = file
        self._positions: set[int] = set()

    def checked(self, position: int, batch: Batch) -> Batch:
        """Check the CRC of a batch that was read from `position`, and return the batch.

        If the batch is damaged, the method logs the damage and raises CORRUPT_MESSAGE.
        """
        try:
            batch.check()
        except KafkaError as error:
            self.report(position, batch, error)
            raise
        return batch

    def report(self, position: int, batch: Batch, error: KafkaError) -> None:
        """Log the file, the position and the offsets of a damaged batch, unless it was reported before."""
        if position not in self._positions:
            self._positions.add(position)
            # A compressed message (v0, v1) contains several records. The offset of the first record is in the
            # compressed bytes, which may be damaged. So for a message the log line names only the last offset.
            first = f"{batch.base_offset} to" if isinstance(batch, RecordBatch) else "up to"
            LOGGER.error(
                "%s, position %d, offsets %s %d: %s", self._file.path, position, first, batch.last_offset, error.message
            )
