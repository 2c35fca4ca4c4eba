"""Reads the records of a log directly, without a client."""

from __future__ import annotations

from collections.abc import Iterator

from hmb.records import Batch, Record, iter_batches
from hmb.storage.log import Log

READ_BYTES = 1 << 20


def batches_from(log: Log, offset: int) -> Iterator[Batch]:
    """Yield the batches of a log, beginning with the batch that contains `offset`."""
    while (region := log.read(offset, READ_BYTES).records) is not None:
        previous = offset
        for batch in iter_batches(region.read()):
            yield batch
            offset = batch.last_offset + 1
        if offset == previous:
            return


def records_of(log: Log) -> Iterator[Record]:
    """Yield all records of a log, except control records, beginning at the log start offset."""
    start = log.log_start_offset
    for batch in batches_from(log, start):
        if not batch.is_control:
            batch.check()
            yield from (record for record in batch.records() if record.offset >= start)
