"""Finds the batches of a log that belong to aborted transactions.

A reader of committed records must skip the records of aborted transactions. Together with the batches, the log returns
a list of the aborted transactions whose records are in these batches. Each entry of the list has the transaction's
producer id and the offset of the transaction's first record. The transaction ends with a control batch of the same
producer, the ABORT marker.

For example, the list of aborted transactions contains producer 7 with the first offset 100. The transactional batches
of producer 7 from offset 100 on belong to this aborted transaction, up to the next ABORT marker of producer 7. A later
batch of producer 7 belongs to another transaction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from hmb.records.control import ControlType, control_type
from hmb.records.reading import Batch


class AbortedTransactions:
    """The aborted transactions in one Fetch response. `covers` decides which batches belong to these transactions.

    The caller must call `covers` once for each batch of the response, in the order of the batches.
    """

    def __init__(self, transactions: Iterable[tuple[int, int]]) -> None:
        self._later = deque(sorted((first_offset, producer_id) for producer_id, first_offset in transactions))
        self._open: set[int] = set()  # the producer ids of aborted transactions that have begun and not ended

    def copy(self) -> AbortedTransactions:
        """Return a copy of this object.

        A reader that may read the same batches again needs a copy, because `covers` changes the object.
        """
        other = AbortedTransactions(())
        other._later, other._open = self._later.copy(), self._open.copy()
        return other

    def covers(self, batch: Batch) -> bool:
        """Return whether this batch belongs to an aborted transaction."""
        while self._later and self._later[0][0] <= batch.last_offset:
            self._open.add(self._later.popleft()[1])
        if not batch.is_transactional or batch.producer_id not in self._open:
            return False
        if batch.is_control and any(control_type(record) is ControlType.ABORT for record in batch.records()):
            self._open.discard(batch.producer_id)
        return True
