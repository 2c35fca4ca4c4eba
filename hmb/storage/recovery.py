"""What a log file is worth after a crash: its whole batches, up to the first place that is damaged.

A power cut leaves two kinds of damage at the end of a file (kafka-0.7-design): a batch of which only the beginning was
written, and *nonsense blocks*, where the file has grown but its new blocks were never filled.  A disk that forgets
leaves a third one anywhere.  What tells them from a batch:

- length and CRC, for all that stands behind the length;
- the offsets, for the 8 bytes in front of it, which no CRC covers.  They must grow.  They may leave gaps, because
  compaction leaves some, and a flipped bit looks like a gap too; so a batch behind a gap only counts when the next
  one confirms it: after a wrong offset that is too high the next right one goes back.

Nothing covers the leader epoch (4 bytes); no record depends on it.

`end_of_whole_batches` looks behind a damaged place: are there undamaged batches, or was this the torn end of the file?
No byte says where they would start, so it searches for what could be a header, and believes the CRC.
"""

from __future__ import annotations

import re
import sys
import threading
from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import chain

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import Batch, Codec, RecordBatch, parse_batch
from hmb.records.batch import CONTROL_BIT, CRC_START, HEADER, LOG_OVERHEAD, MAGIC, TRANSACTIONAL_BIT
from hmb.records.crc import crc32c
from hmb.storage.producer_state import BATCHES_KEPT

MAX_RELATIVE_OFFSET = 2**31 - 1
MAX_POSITION = 2**31 - 1  # of a batch that an index entry can name
ZEROS = bytes(1 << 20)

# first offset, size, last offset, max timestamp, producer id, attributes
CheckedBatch = tuple[int, int, int, int, int, int]


NO_STOP = threading.Event()  # of those who cannot be stopped


class Stopped(Exception):
    """The broker stops, so what was under way, a check or a compaction, is given up; the next one begins anew."""


class Damage(KafkaError):
    """From `position` on the bytes are not this log's next batch."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, why)
        self.position = position


def checked_batches(view: memoryview, base_offset: int, following: int | None) -> Iterator[tuple[int, CheckedBatch]]:
    """Each whole batch of a segment's file with its position; ends with `Damage` where something else comes.

    `following` is the base offset of the next segment, None for the last one.
    """
    position, next_offset, end = 0, base_offset, len(view)
    max_offset = base_offset + MAX_RELATIVE_OFFSET
    unconfirmed: tuple[int, CheckedBatch] | None = None
    while position < end:
        try:
            checked = _checked(view, position, end)
            first, size, last, _, _, _ = checked
            if first < next_offset or last > max_offset or position > MAX_POSITION:
                raise _corrupt(f"a batch of offsets {first} to {last} where {next_offset} is next")
        except KafkaError as error:
            raise Damage(unconfirmed[0] if unconfirmed else position, error.message) from None
        if unconfirmed:
            yield unconfirmed
            unconfirmed = None
        if first > next_offset:
            unconfirmed = position, checked
        else:
            yield position, checked
        position += size
        next_offset = last + 1
    if unconfirmed:
        position, (first, *_) = unconfirmed
        if following is None or following < next_offset:
            raise Damage(position, f"offsets jump to {first}, which nothing confirms")
        yield unconfirmed


def _checked(view: memoryview, position: int, end: int) -> CheckedBatch:
    """The batch at a position.  Raises KafkaError.

    A gigabyte of small batches holds a million of them.  So a batch v2 that is as it should be is looked at without
    making an object of it; messages, and the telling what is wrong with anything else, are left to `check`.
    """
    unpack = HEADER.unpack_from
    if position + HEADER.size <= end:
        first, length, _, magic, crc, attributes, delta, _, timestamp, producer_id, _, _, count = unpack(view, position)
        size = LOG_OVERHEAD + length
        if (
            magic == MAGIC
            and HEADER.size <= size <= end - position
            and 0 <= count <= delta + 1
            and crc32c(view[position + CRC_START : position + size]) == crc
        ):
            return first, size, first + delta, timestamp, producer_id, attributes
    batch = parse_batch(view, position)
    batch.check()
    first, timestamp = _first_offset(batch), batch.max_timestamp
    return first, batch.size, batch.last_offset, timestamp, batch.producer_id, batch.attributes


def _first_offset(batch: Batch) -> int:
    """Of a compressed message only its inside tells; what both tell must be the same."""
    if isinstance(batch, RecordBatch) or batch.codec is Codec.NONE:
        return batch.base_offset
    # Whatever the limit of decompression is now, it was within the limit when it was appended.
    offsets = [record.offset for record in batch.records(limit=sys.maxsize)]
    if offsets[-1] != batch.last_offset:
        raise _corrupt(f"a compressed message at offset {batch.last_offset}, and inside it ends at {offsets[-1]}")
    return offsets[0]


class ProducerBatches:
    """Which of a segment's batches tell all that a log must know of its producers.

    These are the last ones of each producer, the first of each transaction, and the markers that end it.
    """

    def __init__(self) -> None:
        self._last: dict[int, deque[int]] = defaultdict(lambda: deque(maxlen=BATCHES_KEPT))
        self._of_transactions: list[int] = []
        self._open: set[int] = set()

    def note(self, position: int, producer_id: int, attributes: int) -> None:
        """Take the segment's next batch with a producer id."""
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


def end_of_whole_batches(view: memoryview, position: int, next_offset: int) -> int | None:
    """The offset after the last undamaged batch anywhere behind `position`; None where there is none.

    They may have any offsets from `next_offset` on.
    """
    end = len(view)
    while end - len(ZEROS) >= position and view[end - len(ZEROS) : end] == ZEROS:
        end -= len(ZEROS)  # a file that was preallocated
    # Offset (of which the first bytes are known), size (not 0), leader epoch or CRC, magic.
    header = re.compile(re.escape(next_offset.to_bytes(8, "big")[:3]) + rb"(?s:.{5}(?!\0{4})[\0-\x7f].{7}[\0-\2])")
    found: int | None = None
    while match := header.search(view, position, end):
        try:
            batch = parse_batch(view, match.start())
            batch.check()
        except KafkaError:
            position = match.start() + 1
            continue
        if batch.last_offset < next_offset:
            position = match.start() + 1
            continue
        position, next_offset = match.start() + batch.size, batch.last_offset + 1
        found = next_offset
    return found


def _corrupt(why: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, why)
