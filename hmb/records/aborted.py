"""Finds the batches of a log that belong to aborted transactions.

A reader of committed records must skip the records of aborted transactions. The log therefore returns a list
together with the batches. The list has an entry for each aborted transaction whose records are in these
batches. The entry contains the producer id of the transaction, and the offset of its first record. The
transaction ends with the ABORT marker, a control batch of the same producer.

For example, an aborted transaction of producer 7 begins at offset 100. The transaction ends with the next
ABORT marker of producer 7. All transactional batches of producer 7 from offset 100 to this marker belong to
the transaction. Later batches of producer 7 do not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from hmb.records.control import ControlType, control_type
from hmb.records.reading import Batch


class AbortedTransactions:
    """The aborted transactions in one Fetch response. `covers` returns whether a batch belongs to one of them.

    The caller must call `covers` exactly once for each batch of the response, in the order of the batches. The
    reason: `covers` keeps track of the transactions that are open at the current batch.
    """

    def __init__(self, transactions: Iterable[tuple[int, int]]) -> None:
        self._later = deque(sorted((first_offset, producer_id) for producer_id, first_offset in transactions))
        self._open: set[int] = set()  # the producer ids of the aborted transactions that are open at the current batch

    def copy(self) -> AbortedTransactions:
        """Return an independent copy of this object.

        A caller that reads the batches of a response twice needs this object and a copy, because `covers` cannot go
        back to an earlier batch.
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
