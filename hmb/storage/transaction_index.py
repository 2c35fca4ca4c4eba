"""The transaction index: it lists aborted transactions, so that readers of committed data can skip aborted records.

The broker appends the records of a transaction immediately, before it knows whether the transaction will commit or
abort. When the transaction ends, the broker appends a marker that contains the result (records/control.py).

A consumer with `isolation_level` 1 must skip the records of an aborted transaction. But the marker with the result of
the transaction is stored after these records. So when the consumer reads the records, it has not seen the marker yet.
The broker therefore sends a list of the aborted transactions together with the records. It finds these transactions in
the transaction index.

For each aborted transaction, the broker writes an entry into the `.txnindex` file of the segment that contains
the transaction's marker. An entry has 34 bytes, and the entries have the order of the markers in the log:
    version              int16   0
    producer id          int64
    first offset         int64   of the transaction in this partition; possibly in an earlier segment
    last offset          int64   the offset of the marker
    last stable offset   int64   at the time of the write, no open transaction has records below this offset

A consumer fetches the records at the offsets from `start` up to `end` - 1. The response also lists the aborted
transactions that have records at these offsets. For each of these transactions, the list contains the producer
id and the transaction's first offset.

At the first offset of an aborted transaction, the consumer begins to skip all records of the transaction's
producer. It stops skipping at the marker that ends the transaction.

For a fetch from offset `start` on, the broker skips index entries whose marker is below `start`. The records
of such a transaction come before the marker, so the fetch does not contain them. The broker also reads the
indexes of later segments, where a fetched transaction can end.

For a fetch of the offsets below `end`, the broker reads index entries up to the first one whose last stable
offset is at least `end`. When the broker wrote this entry, no open transaction had records below `end`. The
transactions of later entries were still open or had not begun, so they have no records below `end`.

If a segment has no aborted transactions, its `.txnindex` file does not exist. A lost `.txnindex` file would
therefore look like a segment without aborted transactions, and consumers would receive aborted records. To
prevent this, the broker syncs the transaction index together with the log file. (The broker does not sync the
other indexes.)

Each time the broker starts, it checks the length of the index and the order of the numbers in it. If this check
fails, the broker rebuilds the index from the log. It also rebuilds the index of a segment that it has recovered
after a crash (recovery/loading.py).

Source: KIP-98; Kafka's `TransactionIndex`, `AbortedTxn`.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from hmb.protocol.enums import INT64_MAX
from hmb.records.crc import crc32c
from hmb.storage.files.durability import replace_file, sync_directory
from hmb.storage.files.index_blocks import NO_BLOCK
from hmb.storage.files.sorted_entries import NO_KEYS, IndexFile
from hmb.storage.files.virtual import DurableFile

VERSION = 0


class AbortedTransaction(NamedTuple):
    """One aborted transaction: the fields of an entry of the transaction index, except the field `version`."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex(IndexFile):
    """The `.txnindex` file of one segment. An entry has 34 bytes.

    The entries have the same order as the transactions' markers in the log. Searches use a copy of all entries in
    memory, so they work even if another process changes the file.
    """

    SUFFIX = ".txnindex"
    ENTRY = struct.Struct(">hqqqq")
    KEY = struct.Struct(">18xq")  # The key is the last offset.

    file: DurableFile

    def __init__(self, path: Path, base_offset: int) -> None:
        super().__init__(path, base_offset)
        self._content = bytearray(path.read_bytes() if self.entries else b"")
        self.is_incomplete = False  # whether the broker must still rebuild the index from the log

    def _file_at(self, path: Path, *, exists: bool) -> DurableFile:
        return DurableFile(path, exists=exists)

    @property
    def checksum(self) -> int:
        """The CRC-32C of all entries.

        The broker saves this checksum in the file `hmb-manifest`. At the next start, it compares the checksums to
        notice whether the index has changed.
        """
        return crc32c(self._content)

    def append(self, transaction: AbortedTransaction) -> None:
        """Add an entry. If the method raises OSError, it has added nothing."""
        # Other threads search without a lock. If `_append` increased the number of entries first, a search could read
        # bytes that do not exist yet.
        self._content += self.ENTRY.pack(VERSION, *transaction)
        try:
            self._append(VERSION, *transaction)
        except OSError:
            del self._content[-self.ENTRY.size :]
            raise

    def from_offset(self, offset: int) -> Iterator[AbortedTransaction]:
        """Return the transactions whose markers are at `offset` or after it."""
        entries = self.entries
        number = self._search(bisect_left, offset)[0] if entries else 0
        return (AbortedTransaction._make(self._unpacked(each)[1:]) for each in range(number, entries))

    def aborted_in(self, first_offset: int = 0, next_offset: int = INT64_MAX) -> list[AbortedTransaction]:
        """Return the transactions whose markers have offsets from `first_offset` up to `next_offset` - 1.

        If the index is incomplete, return an empty list. An index is incomplete until the broker has rebuilt it
        from the log.
        """
        if self.is_incomplete:
            return []
        return [aborted for aborted in self.from_offset(first_offset) if aborted.last_offset < next_offset]

    def _read(self, first: int, count: int) -> bytes:
        return bytes(self._content[first * self.ENTRY.size : (first + count) * self.ENTRY.size])

    def _unpacked(self, number: int) -> tuple[int, ...]:
        return self.ENTRY.unpack_from(self._content, number * self.ENTRY.size)

    def is_sane(self) -> bool:
        """Return whether all entries are complete and valid. A missing file is an index without entries."""
        if self._found is None:
            return True
        if self._found.size % self.ENTRY.size:
            return False
        next_offset = self.base_offset
        for number in range(self.entries):
            fields = self._unpacked(number)
            if not is_possible(fields, next_offset):
                return False
            next_offset = fields[3] + 1
        return True

    def replace(self, transactions: Sequence[AbortedTransaction]) -> None:
        """Replace all entries, in memory and on disk. If the method raises OSError, the index keeps its old entries."""
        path = self.path
        content = b"".join(self.ENTRY.pack(VERSION, *each) for each in transactions)
        if transactions:
            replace_file(path, content)
        elif path.exists():
            path.unlink()
            sync_directory(path.parent)
        self.file = self._file_at(path, exists=bool(transactions))
        self._content, self._block_keys, self.entries = bytearray(content), NO_KEYS, len(transactions)
        self._last_block = NO_BLOCK
        self.is_incomplete = False


def is_possible(fields: tuple[int, ...], next_offset: int) -> bool:
    """Return whether `fields` can be the fields of an entry in a transaction index.

    The last offset of an entry is the offset of the transaction's marker. It must be at least `next_offset`,
    because the entries are in the order of the markers. For the first entry, `next_offset` is the segment's base
    offset. For every other entry, it is the offset after the previous marker.
    """
    version, producer_id, first, last, last_stable = fields
    in_order = 0 <= first < last and next_offset <= last and 0 <= last_stable <= last + 1
    return version == VERSION and producer_id >= 0 and in_order
