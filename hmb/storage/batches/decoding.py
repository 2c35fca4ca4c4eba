"""Limits how many threads decode batches, and checks the CRC of a stored batch before it is decoded.

A broker usually stores and sends batches without reading their records. It must read the records in the four
cases of the next table. Decompressed records can need much memory, so only a few threads may read records at
the same time. Each of the semaphores PREPARING, SEARCHING and CONVERTING admits two threads:
    case                                             threads limited by       CRC checked by
    check produced records, or change their codec    PREPARING                validation.py, before the append
    search for a timestamp (ListOffsets)             SEARCHING                the class `DamageReports`
    convert for old clients (broker/old_clients.py)  CONVERTING               the class `DownConversion`
    compact a log                                    one thread: the cleaner  compaction/cleaner.py

*The CRC.* The disk may change a bit of a batch after the append. If the broker wrote the damaged records into a new
batch, the new batch would have a correct CRC, and nobody could find the damage any more. So before the broker reads
records from the disk, it checks the CRC. When the broker finds a damaged batch for the first time, it logs the file,
the position and the offsets.

*The memory.* To decompress a batch, a thread needs up to `max.decompressed.message.bytes` of memory. For
example, 100 clients each send a batch that has 32 MB after decompression. If 100 threads decompressed these
batches at the same time, the broker would need 3.2 GB. The semaphore PREPARING lets only two threads decompress
at a time. These two threads need 64 MB together, and the other 98 threads wait.
"""

from __future__ import annotations

import logging
import threading

from hmb.protocol.errors import KafkaError
from hmb.records import Batch, RecordBatch
from hmb.storage.files.virtual import VirtualFile

LOGGER = logging.getLogger(__name__)

# A thread can wait for a semaphore without a time limit, because each holder releases it within a few seconds. A holder
# only reads or converts a limited number of bytes from one partition. It waits for no client and for no other
# semaphore.
PREPARING, SEARCHING, CONVERTING = (threading.BoundedSemaphore(2) for _ in range(3))


class DamageReports:
    """Logs the damaged batches of one log file. Each damaged batch is logged only once."""

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
            # In an old format (v0, v1), the header of a compressed batch contains only the last offset. The first
            # offset is in the compressed bytes, and these may be damaged. So the log line says "offsets up to 9".
            first = f"{batch.base_offset} to" if isinstance(batch, RecordBatch) else "up to"
            offsets = f"offsets {first} {batch.last_offset}"
            LOGGER.error("%s, position %d, %s: %s", self._file.path, position, offsets, error.message)
