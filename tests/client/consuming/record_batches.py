"""Decodes the bytes of record batches to Arrow columns without a consumer, for tests."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from hmb.records.aborted import AbortedTransactions
from hmb.records.fast.columns import columns
from hmb.records.reading import Buffer, iter_batches


def record_batch(
    topic: str,
    partition: int,
    data: Buffer,
    first: int = 0,
    end: int | None = None,
    *,
    aborted: Iterable[tuple[int, int]] = (),
    check_crcs: bool = True,
) -> pa.RecordBatch:
    """Return the records in `data` at the offsets from `first` to `end` - 1, as Arrow columns.

    The result contains no control records and no records of aborted transactions. `aborted` contains the producer id
    and the first offset of each aborted transaction. Raises KafkaError if the bytes in `data` are damaged.
    """
    transactions = AbortedTransactions(aborted)
    wanted = []
    for batch in iter_batches(data):
        if batch.last_offset >= first:
            if check_crcs:
                batch.check()
            if not transactions.covers(batch) and not batch.is_control:
                wanted.append(batch)
    return columns(topic, partition, wanted, first, end)
