"""Opening batches: the checks before the broker reads the records of a batch.

A broker stores and sends batches without reading their records, and a client checks the CRC of the batches it gets. In
three cases the broker reads the records itself: it searches for a timestamp, it compacts a log, or it converts records
for an old client. A disk may have changed a bit since the append. A batch that is written again gets a new CRC, and
after that nobody could find the damage. So the broker checks the CRC first in each of these cases. When it finds a
damaged batch for the first time, it logs the file, the position and the offsets.

Reading the records of a compressed batch takes up to `max.decompressed.message.bytes` of memory. So only a few threads
read such batches at the same time, so the memory is limited.
"""

from __future__ import annotations

import logging
import threading

from hmb.protocol.errors import KafkaError
from hmb.records import Batch, RecordBatch
from hmb.storage.files.virtual import VirtualFile

LOGGER = logging.getLogger(__name__)

# A thread that reads the records of a batch holds one of these semaphores, so that at most two threads do so for each
# purpose. A thread that holds one takes no other lock and waits for no client.
PREPARING, SEARCHING, CONVERTING = (threading.BoundedSemaphore(2) for _ in range(3))


class DamageReports:
    """Logs the damaged batches of one log file. Each damaged batch is logged once."""

    def __init__(self, file: VirtualFile) -> None:
        self._file = file
        self._positions: set[int] = set()

    def checked(self, position: int, batch: Batch) -> Batch:
        """Check the CRC of a batch that was read as a whole from this position, and return the batch.

        Raises CORRUPT_MESSAGE if the batch is damaged, and logs the damage.
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
            # The offset of the first record of a compressed message is in the compressed part, which may be damaged. So
            # the text names the last offset only.
            first = f"{batch.base_offset} to" if isinstance(batch, RecordBatch) else "up to"
            LOGGER.error(
                "%s, position %d, offsets %s %d: %s", self._file.path, position, first, batch.last_offset, error.message
            )
