"""Makes Arrow record batches for consumers. A batch contains the fetched records of one partition as columns.

This module first removes batches that the consumer must not return, for example batches of aborted transactions. It
then converts the other batches to Arrow columns, with the function `columns` of the module `hmb.records.fast.columns`.
If a batch is damaged, the error contains the partition and the offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hmb.client.consuming.buffer import BatchDecoder, FetchedBatches, RecordBuffer, batch_error
from hmb.protocol.errors import KafkaError
from hmb.records.fast.columns import columns, columns_of_records

if TYPE_CHECKING:
    import pyarrow as pa


def take_batch(buffer: RecordBuffer, names: Sequence[str]) -> pa.RecordBatch | None:
    """Remove the next records of one partition from the buffer, and return their columns.

    `names` contains the names of the columns. Return None if the buffer contains no more records.
    """
    records = buffer.take_decoded()
    if records:
        return columns_of_records(records).select(names)
    while (fetched := buffer.next_fetched()) is not None:
        table, next_offset, error = _readable(fetched, buffer.decoder, names)
        buffer.remove_next_fetched(table.num_rows, next_offset, error)
        if table.num_rows:
            return table
    return None


def _readable(
    fetched: FetchedBatches, decoder: BatchDecoder, names: Sequence[str]
) -> tuple[pa.RecordBatch, int, KafkaError | None]:
    """Return the records of all batches before the first damaged batch, as columns.

    Also return the offset after these records, and the error of the damaged batch. The error is None if no batch is
    damaged.
    """
    position = fetched.position
    first, end = position.consumed, position.end
    batches, next_offset, error = decoder.checked(fetched)
    try:
        return columns(*position.partition, batches, first, end, names), next_offset, error
    except KafkaError as why:
        error, next_offset = KafkaError(why.code, f"{position.partition}: {why.message}"), first
    for number, batch in enumerate(batches):
        try:
            columns(*position.partition, [batch], first, end, names)
        except KafkaError as why:  # The checksum of the batch is correct, but its records are invalid.
            table = columns(*position.partition, batches[:number], first, end, names)
            return table, next_offset, batch_error(position, batch, why)
        next_offset = batch.last_offset + 1
    # Each batch alone can be converted, so no batch is damaged. All batches together are too large for one Arrow
    # column, so return an empty table with the error.
    return columns(*position.partition, [], first, end, names), first, error
