"""Checks the batches of a log file, and finds the next intact batch after a damaged one.

A power cut can leave an incomplete batch at the end of a file. It can also leave a *nonsense block*: the file
system has allocated a block for the file, but has not written the data to it (Kafka 0.7 design, "Log"). A disk
error can change any byte.

`checked_batch` checks the length and the CRC of a batch. The CRC does not cover the batch's offset (8 bytes). So
scanning.py checks that each batch has greater offsets than the batch before it. The CRC does not cover the leader epoch
(4 bytes) either, but no record depends on the leader epoch.

`next_whole_batch` searches for an intact batch after a damaged batch. No special byte marks the beginning of a
batch. So the function looks for bytes that could be the header of a batch, and then computes the CRC. If the
CRC is correct, the function has found an intact batch.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict, deque
from itertools import chain

from hmb.protocol.enums import MAX_IN_FLIGHT
from hmb.protocol.errors import ErrorCode, KafkaError, corrupt_message
from hmb.records import Batch, Codec, RecordBatch, parse_batch
from hmb.records.batch import CONTROL_BIT, CRC_START, MAGIC_POSITION, TRANSACTIONAL_BIT
from hmb.records.crc import crc32, crc32c
from hmb.records.fast.batch_check import CheckedBatch, intact_batch
from hmb.records.reading import HEADER_PEEK
from hmb.storage.files.windows import WINDOW, Windows

ZEROS = bytes(1 << 20)
MIN_HEADER = MAGIC_POSITION + 1  # bytes that the search needs to recognize a possible header


class Damage(KafkaError):
    """The error for a file that has no intact batch at `position`."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, why)
        self.position = position


def checked_batch(windows: Windows, position: int) -> CheckedBatch:
    """Return the batch at `position` in the file.

    Raises KafkaError if the batch is not intact, and OSError if the file cannot be read.

    The fast function `intact_batch` checks most batches. Slower code checks each batch that is damaged, has an
    older format than v2, or is not completely in memory.
    """
    index = position - windows.start
    fast = intact_batch(windows.view, index) if index >= 0 else None
    if fast is not None:
        return fast
    header = parse_batch(*windows.at(position, HEADER_PEEK))
    batch = parse_batch(*_view_of(windows, position, header.size))
    batch.check()
    first, timestamp = _first_offset(batch), batch.max_timestamp
    return CheckedBatch(first, batch.size, batch.last_offset, timestamp, batch.producer_id, batch.attributes)


def _view_of(windows: Windows, position: int, size: int) -> tuple[memoryview, int]:
    """Return a view that contains a batch of `size` bytes, and the index of the batch in the view.

    If the length field of the batch is damaged, `size` can be far too large, for example 1 GiB. So if `size` is
    larger than a window (1 MiB), the function first computes the CRC in parts. It reads the whole batch into memory
    only if the CRC is correct.

    Raises KafkaError, OSError.
    """
    if size > WINDOW:
        header = parse_batch(*windows.at(position, HEADER_PEEK))
        if position + size > windows.end:
            raise corrupt_message(f"a batch of {size} bytes, but only {windows.end - position} are left")
        start, checksum = (CRC_START, crc32c) if isinstance(header, RecordBatch) else (MAGIC_POSITION, crc32)
        crc = 0
        for chunk in windows.chunks(position + start, position + size):
            crc = checksum(chunk, crc)
        if crc != header.crc:
            raise corrupt_message(f"the batch's CRC is {header.crc:#010x}, but the CRC of its bytes is {crc:#010x}")
    return windows.at(position, size)


def _first_offset(batch: Batch) -> int:
    """Return the first offset of a batch.

    A compressed message v0 or v1 contains this offset only in its compressed part. The function therefore
    decompresses such a message. Raises KafkaError if the message is damaged.
    """
    if isinstance(batch, RecordBatch) or batch.codec is Codec.NONE:
        return batch.base_offset
    # When the broker accepted this batch, the limit for decompressed bytes was perhaps higher than it is now. With the
    # present limit, the check could reject an intact batch. So decompress without a limit.
    offsets = [record.offset for record in batch.records(limit=sys.maxsize)]
    if offsets[-1] != batch.last_offset:
        raise corrupt_message(f"a compressed message ends at offset {batch.last_offset}, its content at {offsets[-1]}")
    return offsets[0]


class ProducerBatches:
    """The positions of the batches from which the broker rebuilds the state of the log's producers.

    From one segment, the broker needs the last five batches of each producer, the first batch of each transaction,
    and all transaction markers.
    """

    def __init__(self) -> None:
        self._last: dict[int, deque[int]] = defaultdict(lambda: deque(maxlen=MAX_IN_FLIGHT))
        self._of_transactions: list[int] = []
        self._open: set[int] = set()

    def add_batch(self, position: int, producer_id: int, attributes: int) -> None:
        """Add the position of one batch. The caller adds each batch that has a producer id, in log order."""
        if attributes & CONTROL_BIT:
            self._open.discard(producer_id)
            self._of_transactions.append(position)
        elif attributes & TRANSACTIONAL_BIT and producer_id not in self._open:
            self._open.add(producer_id)
            self._of_transactions.append(position)
        else:
            self._last[producer_id].append(position)

    @property
    def has_transactions(self) -> bool:
        return bool(self._of_transactions)

    def positions(self) -> list[int]:
        return sorted(chain(self._of_transactions, *self._last.values()))


def end_of_whole_batches(windows: Windows, position: int, next_offset: int) -> int | None:
    """Return the offset after the file's last intact batch, or None if no intact batch exists.

    Search from the byte `position` on. Ignore batches that end below the offset `next_offset`. Raises OSError.
    """
    end: int | None = None
    while found := next_whole_batch(windows, position, next_offset):
        position, batch = found
        position, next_offset = position + batch.size, batch.last_offset + 1
        end = next_offset
    return end


def next_whole_batch(windows: Windows, position: int, lowest: int) -> tuple[int, CheckedBatch] | None:
    """Return `(position, batch)` for the first intact batch at or after `position`, or None.

    The search looks for bytes that could be a header, and then checks the CRC. It ignores batches whose last offset
    is below `lowest`. Raises OSError.
    """
    end = _end_of_data(windows, position)
    # The pattern finds bytes that could be the header of a batch: the offset (8 bytes), the size (4 bytes), 4 bytes
    # with any values, and the magic (1 byte). The first three bytes of the offset must equal those of the offset
    # `lowest`. The size must be positive, and the magic must be 0, 1 or 2.
    header = re.compile(re.escape(lowest.to_bytes(8, "big")[:3]) + rb"(?s:.{5}(?!\0{4})[\0-\x7f].{7}[\0-\2])")
    while position + MIN_HEADER <= end:
        view, index = windows.at(position, MIN_HEADER)
        if len(view) - index < MIN_HEADER:  # Another process has cut the file.
            break
        match = header.search(view, index, index + end - position)
        if match is None:
            # A header can begin in the last MIN_HEADER - 1 bytes of `view`, and continue after them. So the next search
            # begins at the first of these bytes.
            position += len(view) - index - MIN_HEADER + 1
            continue
        position += match.start() - index
        try:
            checked = checked_batch(windows, position)
        except KafkaError:
            position += 1
            continue
        if checked.last_offset >= lowest:
            return position, checked
        position += checked.size
    return None


def _end_of_data(windows: Windows, position: int) -> int:
    """Return the end of a file's data, without the blocks of zeros at the file's end.

    For example, zeros follow the data if the file system has reserved space for the file. The function reads blocks
    of 1 MiB, from the file's end backward. It stops at a block that contains a nonzero byte or begins before
    `position`, and returns the end of this block.
    """
    end = windows.end
    while end - len(ZEROS) >= position:
        view, index = windows.at(end - len(ZEROS), len(ZEROS))
        if view[index : index + len(ZEROS)] != ZEROS:
            break
        end -= len(ZEROS)
    return end
