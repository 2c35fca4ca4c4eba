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
from collections.abc import Iterator

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import Batch, Codec, RecordBatch, parse_batch

MAX_RELATIVE_OFFSET = 2**31 - 1
MAX_POSITION = 2**31 - 1  # of a batch that an index entry can name
ZEROS = bytes(1 << 20)


class Damage(KafkaError):
    """From `position` on the bytes are not this log's next batch."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, why)
        self.position = position


def checked_batches(view: memoryview, base_offset: int, following: int | None) -> Iterator[tuple[int, Batch]]:
    """Each whole batch of a segment's file with its position; ends with `Damage` where something else comes.

    `following` is the base offset of the next segment, None for the last one.
    """
    position, next_offset = 0, base_offset
    unconfirmed: tuple[int, Batch] | None = None
    while position < len(view):
        try:
            batch = parse_batch(view, position)
            batch.check()
            first = _first_offset(batch)
            if first < next_offset or batch.last_offset - base_offset > MAX_RELATIVE_OFFSET or position > MAX_POSITION:
                raise _corrupt(f"a batch of offsets {first} to {batch.last_offset} where {next_offset} is next")
        except KafkaError as error:
            raise Damage(unconfirmed[0] if unconfirmed else position, error.message) from None
        if unconfirmed:
            yield unconfirmed
        unconfirmed = (position, batch) if first > next_offset else None
        if not unconfirmed:
            yield position, batch
        position += batch.size
        next_offset = batch.last_offset + 1
    if unconfirmed:
        if following is None or following < next_offset:
            raise Damage(unconfirmed[0], f"offsets jump to {_first_offset(unconfirmed[1])}, which nothing confirms")
        yield unconfirmed


def _first_offset(batch: Batch) -> int:
    """Of a compressed message only its inside tells; what both tell must be the same."""
    if isinstance(batch, RecordBatch) or batch.codec is Codec.NONE:
        return batch.base_offset
    offsets = [record.offset for record in batch.records()]
    if offsets[-1] != batch.last_offset:
        raise _corrupt(f"a compressed message at offset {batch.last_offset}, and inside it ends at {offsets[-1]}")
    return offsets[0]


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
