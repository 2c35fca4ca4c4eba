"""Reads the headers of the record batches that a member of a share group may acquire.

A member of a share group acquires ranges of offsets, so the broker must know which offsets each batch contains. The
broker reads only the headers of the batches (61 bytes each). The connection later sends the batches themselves from the
file with `sendfile`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hmb.coordinator.share.in_flight import Run
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records.aborted import AbortedTransactions
from hmb.records.reading import HEADER_PEEK, Batch, parse_batch
from hmb.storage.files.virtual import FileRegion
from hmb.storage.log import Log


@dataclass(frozen=True, slots=True)
class StoredBatches:
    """Neighboring record batches in the file of a log segment: their offsets, and their positions in the file."""

    region: FileRegion
    offsets: Sequence[range]
    positions: Sequence[int]  # the position of each batch in the file, and the end of the last batch
    aborted: Sequence[range] = ()  # the offsets of batches that belong to aborted transactions

    def part(self, acquired: Sequence[Run]) -> FileRegion:
        """Return the region of the file that contains the acquired records.

        `acquired` contains the offset ranges that a member of a share group has acquired, in ascending order. The
        region can also contain other records. It consists of whole batches, from the batch of the first acquired record
        to the batch of the last acquired record.
        """
        first, last = acquired[0].first, acquired[-1].last
        begin = next(number for number, batch in enumerate(self.offsets) if batch.stop > first)
        end = next(number for number, batch in enumerate(self.offsets) if batch.stop > last)
        start = self.positions[begin]
        return FileRegion(self.region.file, start, self.positions[end + 1] - start)


def read_batches(log: Log, offset: int, records: int, max_bytes: int, *, committed: bool) -> StoredBatches | None:
    """Return the offsets and the file positions of the next batches of a log.

    The result begins with the batch that contains `offset`, and ends with the batch that contains
    `offset + records - 1`. If one of these two batches does not exist, the next batch takes its place.

    The result is shorter if the segment ends earlier, or if more batches would exceed `max_bytes` bytes.

    If `committed` is true, the function reads only below the last stable offset. The result includes batches of
    aborted transactions, and its field `aborted` lists the offsets of these batches.

    Return None if the function finds no records, or if the log has just deleted the record at `offset`. Raises
    KafkaError.
    """
    try:
        found = log.read(offset, max_bytes, committed=committed)
    except KafkaError as error:
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:  # The log has just deleted this record.
            return None
        raise
    if found.records is None:
        return None
    transactions = AbortedTransactions((each.producer_id, each.first_offset) for each in found.aborted)
    offsets: list[range] = []
    positions = [found.records.position]
    aborted: list[range] = []
    for batch in _batches(found.records):
        offsets.append(range(batch.base_offset, batch.last_offset + 1))
        positions.append(positions[-1] + batch.size)
        if found.aborted and transactions.covers(batch):
            aborted.append(offsets[-1])
        if batch.last_offset + 1 >= offset + records:
            break
    return StoredBatches(found.records, offsets, positions, aborted)


def _batches(region: FileRegion) -> Iterator[Batch]:
    """Yield the batches of a region. Read only the header of each batch, because a batch can be long.

    A control batch is short, and is read completely: its record shows whether a transaction was committed or
    aborted.
    """
    position, end = region.position, region.position + region.size
    while position < end:
        batch = parse_batch(region.file.read(HEADER_PEEK, position))
        if position + batch.size > end:
            return
        if batch.is_control:
            batch = parse_batch(region.file.read(batch.size, position))
        yield batch
        position += batch.size
