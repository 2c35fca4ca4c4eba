"""Reads the records of a log directly, without a client."""

from __future__ import annotations

from collections.abc import Iterator

from hmb.records import Record, iter_batches
from hmb.storage.log import Log

READ_BYTES = 1 << 20


def records_of(log: Log) -> Iterator[Record]:
    """Yield all records of a log, except control records, beginning at the log start offset."""
    offset = start = log.log_start_offset
    while (region := log.read(offset, READ_BYTES).records) is not None:
        previous = offset
        for batch in iter_batches(region.read()):
            if not batch.is_control:
                batch.check()
                yield from (record for record in batch.records() if record.offset >= start)
            offset = batch.last_offset + 1
        if offset == previous:
            return
