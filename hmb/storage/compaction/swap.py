"""Replaces old segments with a compacted one (a swap). A crash at any step neither loses nor duplicates a record.

A swap has four steps:
1. The broker writes the new segment, `<base offset>.log.cleaned`, with its indexes, and syncs it.
2. The broker changes the suffix of the new files from `.cleaned` to `.swap`. It renames the log file last. *If the
   broker crashes after this rename, it uses the new segment at its next start.*
3. The broker renames the files of the old segments to `.deleted`.
4. The broker removes the suffix `.swap` from the names of the new files. It renames the log file last.

If the broker crashes during a swap of segments, the names of the files show at the next start how the swap must end:
- A file has the suffix `.log.swap`: the new segment is complete. The broker removes the old segments, and removes the
  suffix `.swap` from the names of the new files.
- No file has the suffix `.log.swap`, but some files have the suffix `.cleaned` or `.swap`: the new segment may be
  incomplete. The broker removes these files, and the log keeps the old segments.

To remove the old segments after a crash, the broker must know which segments are old. So before each swap, the
broker writes the offset range of the old segments into the manifest (a file with a list of all segments). All
segments that begin in this range, for example at an offset from 0 to 299, are old.

If the manifest has no offset range for the swap, all segments that begin in the new segment's range are old.

Source: Kafka's `LogSegments`, `LogLoader`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from hmb.storage.config import LogConfig
from hmb.storage.files import together
from hmb.storage.files.durability import sync_directory
from hmb.storage.files.together import DELETED
from hmb.storage.recovery.index_rebuild import REBUILT
from hmb.storage.recovery.scanning import recover
from hmb.storage.segment import Segment

LOGGER = logging.getLogger(__name__)
CLEANED, SWAP = ".cleaned", ".swap"


class UnfinishedSwap(OSError):
    """The error for a swap that could not rename some of its files.

    The broker renames these files at its next start.
    """


def new_segment(directory: Path, base_offset: int, config: LogConfig) -> Segment:
    """Return an empty segment for the records that compaction keeps. Raises OSError.

    A failed compaction may have left files with the same names in the directory. The function first removes them.
    """
    for leftover in directory.glob(f"{base_offset:020d}.*{CLEANED}"):
        leftover.unlink()
    return Segment(directory, base_offset, config, suffix=CLEANED)


def make_ready(segment: Segment) -> None:
    """Sync the new segment, and rename its files from `.cleaned` to `.swap` (step 2 of the swap). Raises OSError."""
    segment.finish()
    segment.flush()
    together.rename(segment.files, CLEANED, SWAP)
    sync_directory(segment.path.parent)


def put_in_place(segment: Segment) -> None:
    """Give the files of the new segment their final names (step 4 of the swap). Raises OSError."""
    together.rename(segment.files, SWAP, "")
    sync_directory(segment.path.parent)


def finish_swaps(directory: Path, config: LogConfig, next_offsets: Mapping[int, int]) -> set[int]:
    """Complete the swaps that a crash interrupted: replace the old segments with the new ones.

    Return the base offsets of the new segments. The caller must check these segments and rebuild their transaction
    indexes. Raises OSError.

    `next_offsets` comes from the manifest. For example, `{0: 300}` means that the new segment 0 replaces all old
    segments that begin at the offsets 0 to 299.
    """
    finished = set()
    for path in sorted(directory.glob(f"*.log{SWAP}")):
        swap = Segment(directory, int(path.name.split(".")[0]), config, suffix=SWAP)
        end_offset = recover(swap).end_offset
        next_offset = next_offsets.get(swap.base_offset, max(end_offset, swap.base_offset + 1))
        for old in directory.glob("*.log"):
            if swap.base_offset <= int(old.stem) < next_offset:
                LOGGER.info("%s: replaced by its compacted form", old)
                together.mark_deleted(Segment(directory, int(old.stem), config).files)
        put_in_place(swap)
        finished.add(swap.base_offset)
    for suffix in (CLEANED, SWAP, DELETED, REBUILT):
        for leftover in directory.glob(f"*{suffix}"):
            leftover.unlink()
    return finished
