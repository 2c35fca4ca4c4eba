"""Arrow record batches for consumers: the fetched records of one partition as columns.

`hmb.records.fast.columns` builds the columns. This module selects the batches that a consumer may read, and reports
damage with the partition and the offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hmb.client.consuming.buffer import BatchDecoder, FetchedBatches, RecordBuffer, batch_error
from hmb.protocol.errors import KafkaError
from hmb.records.fast.columns import columns, columns_of_records

if TYPE_CHECKING:
    import pyarrow as pa


def take_batch(buffer: RecordBuffer) -> pa.RecordBatch | None:
    """Return the buffered records of the next partition as columns, or None if the buffer is empty."""
    records = buffer.take_decoded()
    if records:
        return columns_of_records(records)
    while (fetched := buffer.next_fetched()) is not None:
        table, next_offset, error = _readable(fetched, buffer.decoder)
        buffer.remove_next_fetched(table.num_rows, next_offset, error)
        if table.num_rows:
            return table
    return None


def _readable(fetched: FetchedBatches, decoder: BatchDecoder) -> tuple[pa.RecordBatch, int, KafkaError | None]:
    """Return the records before the first damaged batch, the next offset, and the error of that batch or None."""
    position = fetched.position
    first, end = position.consumed, position.end
    batches, next_offset, error = decoder.checked(fetched)
    try:
        return columns(*position.partition, batches, first, end), next_offset, error
    except KafkaError as why:
        error, next_offset = KafkaError(why.code, f"{position.partition}: {why.message}"), first
    for number, batch in enumerate(batches):
        try:
            columns(*position.partition, [batch], first, end)
        except KafkaError as why:  # The checksum of the batch is correct, but its records are invalid.
            table = columns(*position.partition, batches[:number], first, end)
            return table, next_offset, batch_error(position, batch, why)
        next_offset = batch.last_offset + 1
    # Each batch fits alone, but all batches together are too large for one column.
    return columns(*position.partition, [], first, end), first, error
