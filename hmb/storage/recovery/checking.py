"""Checking the batches of a log file, and the search for the next intact batch after a damaged one.

A power cut leaves two kinds of damage at the end of a file (Kafka 0.7 design, "Log"). The last batch may be incomplete.
A *nonsense block* is a block of the file that has been allocated and never filled. A disk error may change any byte of
the file. `checked_batch` finds damage by the length and the CRC of a batch. They must match all bytes after the length.

No CRC covers the offset of a batch (8 bytes). scanning.py checks that offsets grow. No CRC covers the leader epoch
(4 bytes) either. No record depends on it.

`next_whole_batch` searches for an intact batch after a damaged one. No byte shows where a batch begins. So the search
looks for bytes that may be a header, and trusts the CRC.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict, deque
from itertools import chain

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import Batch, Codec, RecordBatch, parse_batch
from hmb.records.batch import CONTROL_BIT, CRC_START, HEADER, LOG_OVERHEAD, MAGIC, TRANSACTIONAL_BIT
from hmb.records.crc import crc32, crc32c
from hmb.records.reading import HEADER_PEEK, MAGIC_POSITION
from hmb.storage.files.windows import WINDOW, Windows
from hmb.storage.producer_state import BATCHES_KEPT

ZEROS = bytes(1 << 20)
MIN_HEADER = MAGIC_POSITION + 1  # bytes that the search needs to decide whether a batch may begin at a position
HEADER_SIZE, unpack = HEADER.size, HEADER.unpack_from

# The parts: first offset, size (bytes), last offset, maximum timestamp (ms), producer id, attributes.
CheckedBatch = tuple[int, int, int, int, int, int]


class Damage(KafkaError):
    """An error: the bytes from `position` on are not the next batch of the log."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, why)
        self.position = position


def checked_batch(windows: Windows, position: int) -> CheckedBatch:
    """Return the batch at a position. Raises KafkaError if it is not intact, OSError.

    A gigabyte of small batches holds a million of them. So an intact batch v2 is checked without an object for it.
    Messages, and bytes that are not an intact batch, are left to `check`, which finds out what is wrong.
    """
    view, index = windows.view, position - windows.start
    left = len(view) - index
    if left < HEADER_SIZE or index < 0:  # Calling `at` for each batch would take 10% of the time.
        view, index = windows.at(position, HEADER_SIZE)
        left = len(view) - index
    if left >= HEADER_SIZE:
        first, length, _, magic, crc, attributes, delta, _, timestamp, producer_id, _, _, count = unpack(view, index)
        size = LOG_OVERHEAD + length
        if size > left:
            view, index = _view_of(windows, position, size)
            left = len(view) - index
        if (
            magic == MAGIC
            and HEADER_SIZE <= size <= left
            and 0 <= count <= delta + 1
            and crc32c(view[index + CRC_START : index + size]) == crc
        ):
            return first, size, first + delta, timestamp, producer_id, attributes
    batch = parse_batch(view, index)
    batch.check()
    first, timestamp = _first_offset(batch), batch.max_timestamp
    return first, batch.size, batch.last_offset, timestamp, batch.producer_id, batch.attributes


def _view_of(windows: Windows, position: int, size: int) -> tuple[memoryview, int]:
    """Return a view that contains a batch of `size` bytes, and the index of the batch in the view.

    A damaged length may cover the rest of the file, for example 1 GiB. So if a batch is larger than a window, its CRC
    is first computed window by window. The whole batch is read only if the CRC is right.
    Raises KafkaError, OSError.
    """
    if size > WINDOW:
        header = parse_batch(*windows.at(position, HEADER_PEEK))
        if position + size > windows.end:
            raise corrupt(f"a batch of {size} bytes, but only {windows.end - position} are left")
        start, checksum = (CRC_START, crc32c) if isinstance(header, RecordBatch) else (MAGIC_POSITION, crc32)
        crc = 0
        for chunk in windows.chunks(position + start, position + size):
            crc = checksum(chunk, crc)
        if crc != header.crc:
            raise corrupt(f"the batch's CRC is {header.crc:#010x}, that of its bytes {crc:#010x}")
    return windows.at(position, size)


def _first_offset(batch: Batch) -> int:
    """Return the first offset of a batch. A compressed message has it only in its content. Raises KafkaError."""
    if isinstance(batch, RecordBatch) or batch.codec is Codec.NONE:
        return batch.base_offset
    # The limit of decompression does not apply here: the message was within the limit when it was appended, and the
    # limit may be lower now.
    offsets = [record.offset for record in batch.records(limit=sys.maxsize)]
    if offsets[-1] != batch.last_offset:
        raise corrupt(f"a compressed message at offset {batch.last_offset}, and inside it ends at {offsets[-1]}")
    return offsets[0]


class ProducerBatches:
    """The batches of a segment from which the state of all producers follows.

    These are the last ones of each producer, the first of each transaction, and the marker that ends it.
    """

    def __init__(self) -> None:
        self._last: dict[int, deque[int]] = defaultdict(lambda: deque(maxlen=BATCHES_KEPT))
        self._of_transactions: list[int] = []
        self._open: set[int] = set()

    def note(self, position: int, producer_id: int, attributes: int) -> None:
        """Note the next batch of the segment that has a producer id."""
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
    """Return the offset after the last undamaged batch anywhere after `position`; None if no such batch exists.

    Batches count if they have offsets from `next_offset` on. Raises OSError.
    """
    end: int | None = None
    while found := next_whole_batch(windows, position, next_offset):
        position, (_, size, last, *_) = found
        position, next_offset = position + size, last + 1
        end = next_offset
    return end


def next_whole_batch(windows: Windows, position: int, lowest: int) -> tuple[int, CheckedBatch] | None:
    """Search for the first undamaged batch at `position` or after it that has an offset of `lowest` or more.

    No byte shows where a batch begins, so the search looks for headers and trusts the CRC. Return the position and the
    batch; None if no batch is intact. Raises OSError.
    """
    end = _end_of_data(windows, position)
    # The pattern finds positions at which a batch may begin: the first bytes of the offset `lowest`, then a size above
    # 0, a leader epoch or CRC, and a magic of 0 to 2.
    header = re.compile(re.escape(lowest.to_bytes(8, "big")[:3]) + rb"(?s:.{5}(?!\0{4})[\0-\x7f].{7}[\0-\2])")
    while position + MIN_HEADER <= end:
        view, index = windows.at(position, MIN_HEADER)
        if len(view) - index < MIN_HEADER:  # Another process has cut the file.
            break
        match = header.search(view, index, index + end - position)
        if match is None:  # A header may begin in the last bytes of the view.
            position += len(view) - index - MIN_HEADER + 1
            continue
        position += match.start() - index
        try:
            checked = checked_batch(windows, position)
        except KafkaError:
            position += 1
            continue
        if checked[2] >= lowest:  # checked[2] is the last offset of the batch
            return position, checked
        position += checked[1]
    return None


def _end_of_data(windows: Windows, position: int) -> int:
    """Return the end of the file without the zeros of preallocation. Count only whole blocks of zeros."""
    end = windows.end
    while end - len(ZEROS) >= position:
        view, index = windows.at(end - len(ZEROS), len(ZEROS))
        if view[index : index + len(ZEROS)] != ZEROS:
            break
        end -= len(ZEROS)
    return end


def corrupt(why: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, why)
