"""The swap: a compacted segment replaces old segments. A crash at any step neither loses nor duplicates a record.

1. The new segment is written under `<base offset>.log.cleaned`, with its indexes, and synced.
2. All its files are renamed to `.swap`, the log last. *From this rename on, a start uses the new segment.*
3. The files of the old segments are renamed to `.deleted`.
4. The files of the new segment get their names, the log last.

A start after a crash may find files of these steps:

- `.cleaned` files, or `.swap` files of indexes without their log: step 2 was not complete. The start removes them.
- A `.log.swap` file: step 2 was complete. The start removes the old segments that it covers, and does step 4. The
  old segments begin at or after its base offset, and below the next offset in its manifest entry. If the manifest has
  no entry, the old segments begin below the end of the new one.

Source: Kafka's `LogSegments`, `LogLoader`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from hmb.storage.config import LogConfig
from hmb.storage.files.durability import sync_directory
from hmb.storage.files.together import DELETED
from hmb.storage.recovery.scanning import recover
from hmb.storage.segment import REBUILT, Segment

LOGGER = logging.getLogger(__name__)
CLEANED, SWAP = ".cleaned", ".swap"


class UnfinishedSwap(OSError):
    """Step 3 or 4 of a swap failed. The files' names differ from the log in memory until a start finishes the swap."""


def new_segment(directory: Path, base_offset: int, config: LogConfig) -> Segment:
    """Return the empty segment for step 1. Raises OSError.

    Files of these names can be left over from a failed round of the cleaner.
    """
    for leftover in directory.glob(f"{base_offset:020d}.*{CLEANED}"):
        leftover.unlink()
    return Segment(directory, base_offset, config, suffix=CLEANED)


def make_ready(segment: Segment) -> None:
    """Do step 2 of the swap: sync the new segment, and rename it from `.cleaned` to `.swap`. Raises OSError."""
    segment.seal()
    segment.flush()
    segment.rename(CLEANED, SWAP)
    sync_directory(segment.path.parent)


def put_in_place(segment: Segment) -> None:
    """Do step 4 of the swap: give the new files their final names. Raises OSError."""
    segment.rename(SWAP, "")
    sync_directory(segment.path.parent)


def finish_swaps(directory: Path, config: LogConfig, next_offsets: Mapping[int, int]) -> set[int]:
    """Finish the swap that a crash has interrupted. Raises OSError.

    `next_offsets` maps the base offset of a new segment to the base offset of the segment after it, if the manifest
    contains it. Return the base offsets of the new segments. The caller must check these segments and build their
    transaction indexes again.
    """
    finished = set()
    for path in sorted(directory.glob(f"*.log{SWAP}")):
        swap = Segment(directory, int(path.name.split(".")[0]), config, suffix=SWAP)
        end_offset = recover(swap).end_offset
        next_offset = next_offsets.get(swap.base_offset, max(end_offset, swap.base_offset + 1))
        for old in directory.glob("*.log"):
            if swap.base_offset <= int(old.stem) < next_offset:
                LOGGER.info("%s: replaced by its compacted form", old)
                Segment(directory, int(old.stem), config).mark_deleted()
        put_in_place(swap)
        finished.add(swap.base_offset)
    for suffix in (CLEANED, SWAP, DELETED, REBUILT):
        for leftover in directory.glob(f"*{suffix}"):
            leftover.unlink()
    return finished
