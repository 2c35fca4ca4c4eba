"""The transaction index: which transactions were aborted, so that readers of committed records can leave them out.

A transaction's records go into the log at once, whatever becomes of them; a marker behind them tells how it ended
(records/control.py).  Whoever reads committed records only (`isolation_level` 1) has to know of an abort before he
comes to its marker.  So the broker writes down each aborted transaction, in the `.txnindex` of the segment that holds
its marker, in entries of 34 bytes, in the order of the markers::

    version              int16   0
    producer id          int64
    first offset         int64   of the transaction in this partition; may lie in an earlier segment
    last offset          int64   of its marker
    last stable offset   int64   after the marker: where the next transaction that was open then begins

A fetch of the offsets from `first` up to `end` gets the transactions that overlap them; the client then leaves out
that producer's records from `first offset` on, up to the marker.  The search starts in the segment where the fetch
does, and goes on through the later ones until an entry's last stable offset shows that everything before `end` was
decided.

Most logs have no aborted transactions, and then there is no file.  A missing file says just that, so unlike the other
indexes this one is synced together with its log.  Its length, and how its numbers follow on each other, are checked at
each start.  What does not fit, or belongs to a segment that was recovered, is made again from the log (loader.py).

Source: KIP-98; Kafka's `TransactionIndex`, `AbortedTxn`.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from hmb.storage.files import replace_file, sync_directory
from hmb.storage.offset_index import IndexFile

VERSION = 0


class AbortedTransaction(NamedTuple):
    """An entry, without its version."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex(IndexFile):
    """`.txnindex`: entries of 34 bytes (above); last offsets grow."""

    ENTRY = struct.Struct(">hqqqq")
    FIRST_FIELD = struct.Struct(">18xq")  # the last offset

    def __init__(self, path: Path, base_offset: int) -> None:
        super().__init__(path, base_offset)
        self._is_synced = True

    def __getitem__(self, number: int) -> AbortedTransaction:
        return AbortedTransaction._make(self._fields(number)[1:])

    def append(self, transaction: AbortedTransaction) -> None:
        """Raises OSError, and then nothing was added."""
        self._append(VERSION, *transaction)
        self._is_synced = False  # and the file is open, so a sync need not open it

    def from_offset(self, offset: int) -> Iterator[AbortedTransaction]:
        """The transactions whose markers stand at `offset` or behind it.  Raises OSError where the file is gone."""
        entries = self.entries
        number = bisect_left(range(entries), offset, key=self._key(entries)) if entries else 0
        return (self[each] for each in range(number, entries))

    def is_sane(self) -> bool:
        """Whether each entry can be one; no file is as good as an empty one."""
        if self._found is None:
            return True
        if self._found.size % self.ENTRY.size:
            return False
        next_offset = self.base_offset
        for fields in self.ENTRY.iter_unpack(self._mapped(self.entries)) if self.entries else ():
            if not is_possible(fields, next_offset):
                return False
            next_offset = fields[3] + 1
        return True

    def replace(self, transactions: Sequence[AbortedTransaction]) -> None:
        """Have these entries and no others, on disk too.  Raises OSError, and then it is as it was."""
        self.close()
        if transactions:
            replace_file(self.path, b"".join(self.ENTRY.pack(VERSION, *each) for each in transactions))
        elif self.path.exists():
            self.path.unlink()
            sync_directory(self.path.parent)
        self.entries, self._is_synced = len(transactions), True

    def flush(self) -> None:
        """Sync what was written since the last time; not the name of a new file.  Raises OSError."""
        if not self._is_synced:
            self._is_synced = True  # what is appended from here on has to be synced again
            os.fsync(self._open().fileno())


def is_possible(fields: tuple[int, ...], next_offset: int) -> bool:
    """Whether an entry can have these fields; markers up to `next_offset` stand before it."""
    version, producer_id, first, last, last_stable = fields
    in_order = 0 <= first < last and next_offset <= last and 0 <= last_stable <= last + 1
    return version == VERSION and producer_id >= 0 and in_order
