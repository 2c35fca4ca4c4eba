"""The segments of a log, in the order of their offsets. The last one is the active segment.

When retention or compaction removes a segment from the log, the log immediately renames the segment's files. So
the broker does not load the segment at its next start. A fetch may still read from these files, so the log
usually keeps them for the time `file.delete.delay.ms`. If the disk is full or the broker stops, the log deletes
them earlier.

Source: Kafka's `LogSegments`.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from hmb.storage.config import LogConfig
from hmb.storage.files import together
from hmb.storage.segment import Segment
from hmb.storage.state.manifest import BEING_REPLACED, Manifest, SegmentEntry

LOGGER = logging.getLogger(__name__)


class LogSegments:
    """The list of the segments of one log.

    A thread must hold the log's lock to change the list. A thread must hold the log's `cleanup_lock` to delete or
    replace files of the log, or to close the log. A thread needs no lock to iterate over the segments, because the
    iteration uses a copy of the list.

    Invariants:

    - The list has at least one segment, and the segments are in the order of their base offsets.
    - All records of a segment have smaller offsets than the base offset of the next segment.
    """

    def __init__(self, segments: Sequence[Segment], manifest: Manifest | None, partition: str) -> None:
        self._segments = list(segments)
        # Each pair contains the planned deletion time (ms) of a segment's files, and the segment. The segment is no
        # longer in the log's list.
        self._removed: deque[tuple[int, Segment]] = deque()
        self._manifest = manifest
        self._partition = partition  # the partition's name in the manifest

    def __iter__(self) -> Iterator[Segment]:
        return iter(tuple(self._segments))

    def __len__(self) -> int:
        return len(self._segments)

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def active(self) -> Segment:
        return self._segments[-1]

    def from_offset(self, offset: int) -> list[Segment]:
        """Return the segment that contains `offset`, and all later segments.

        If `offset` is below the first segment, return all segments.
        """
        active = self._segments[-1]
        if offset >= active.base_offset:  # Consumers without lag read here: no search is needed.
            return [active]
        number = bisect_right(self._segments, offset, key=lambda segment: segment.base_offset) - 1
        return self._segments[max(0, number) :]

    def roll(self, end_offset: int, config: LogConfig, *, sync: bool) -> Segment:
        """Close the active segment, and return a new active segment at the log's end. Raises OSError.

        The caller must sync the old segment first. If `sync` is true, the new log file survives a power cut.

        The name of the new log file contains `end_offset`. The method creates this file at once, before the first
        append. So `end_offset` stays known, even if compaction removes the last records of the old segment.
        """
        self.active.close()  # This closes the segment's files. A read opens them again.
        # The manifest is the broker's list of its files. Without a sync, a power cut can remove the new entry. The
        # broker then checks the whole segment at its next start, but no record is lost.
        self.add_entry(self.active, end_offset, sync=False)
        segment = Segment(self.active.path.parent, end_offset, config)
        segment.make(sync=sync)
        self._segments.append(segment)
        return segment

    def take_first(self, count: int) -> list[Segment]:
        """Remove the `count` oldest segments from the list, and return them."""
        taken, self._segments = self._segments[:count], self._segments[count:]
        return taken

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Replace the neighboring segments `old` by the segment `new` in the list."""
        number = self._segments.index(old[0])
        self._segments[number : number + len(old)] = [new]

    def next_offset(self, segment: Segment, end_offset: int) -> int:
        """Return the base offset of the segment after `segment`; for the active segment, return `end_offset`."""
        number = self._segments.index(segment) + 1
        return self._segments[number].base_offset if number < len(self._segments) else end_offset

    def remove_files(self, segments: Sequence[Segment], at: int) -> None:
        """Rename the files of removed segments, so that the broker does not load them at its next start.

        `delete_removed` deletes the files at the time `at` (ms). Raises OSError.
        """
        for segment in segments:
            together.mark_deleted(segment.files)
            self._removed.append((at, segment))

    # -- the manifest

    def entries(self, end_offset: int) -> list[SegmentEntry]:
        """Return the manifest's entries for all segments of a log that ends at `end_offset`. Raises OSError."""
        next_offsets = [*(segment.base_offset for segment in self._segments[1:]), end_offset]
        return [entry_of(segment, after) for segment, after in zip(self._segments, next_offsets, strict=True)]

    def entries_at_stop(self, end_offset: int) -> list[SegmentEntry]:
        """Return the manifest's entries for a closed log that ends at `end_offset`. Raises OSError.

        The method creates a new entry for the active segment. For each older segment, it copies the present entry, if
        there is one, and updates the sizes of the offset index and the time index. The broker may have rebuilt these
        indexes.

        The copied entry keeps the size of the log file. If another process has changed the log file, the broker notices
        the change at its next start.
        """
        known = (self._manifest.segments(self._partition) if self._manifest else None) or {}
        older = [
            known[segment.base_offset]._replace(
                index_size=segment.offset_index.size, time_index_size=segment.time_index.size
            )
            for segment in self._segments[:-1]
            if segment.base_offset in known
        ]
        return [*older, entry_of(self.active, end_offset)]

    def add_entry(self, segment: Segment, next_offset: int, *, sync: bool = True) -> None:
        """Write a segment's entry into the manifest. The next segment begins at `next_offset`."""
        if self._manifest is None:
            return
        try:
            self._manifest.record({self._partition: [entry_of(segment, next_offset)]}, sync=sync)
        except OSError as error:  # The disk is full. The manifest writes the entry later, with the next ones.
            LOGGER.warning("%s: %s", self._manifest.path, error)

    def forget(self, segments: Sequence[Segment]) -> None:
        """Remove the entries of these segments from the manifest, before their files are deleted."""
        if self._manifest is not None and segments:
            try:
                self._manifest.forget_segments(self._partition, [segment.base_offset for segment in segments])
            except OSError as error:  # The disk is full. The deletion frees space, so it continues.
                LOGGER.warning("%s: %s", self._manifest.path, error)

    def begin_replacement(self, old: Sequence[Segment], next_offset: int) -> None:
        """Write into the manifest that one new segment is about to replace the segments `old`. Raises OSError."""
        if self._manifest is not None:
            entry = SegmentEntry(old[0].base_offset, next_offset, BEING_REPLACED, 0, 0, 0, 0, 0)
            self._manifest.replace_segments(self._partition, [segment.base_offset for segment in old], entry)

    def delete_removed(self, now: int | None = None) -> None:
        """Delete the files of removed segments. Raises OSError.

        Each removed segment has a planned deletion time. If `now` (ms) is given, skip segments with a later
        deletion time.
        """
        while self._removed and (now is None or self._removed[0][0] <= now):
            together.delete(self._removed.popleft()[1].files)

    def update_parent_dir(self, directory: Path) -> None:
        """Change the paths of all files, because the broker has renamed the log's directory to `directory`.

        To delete a log, the broker first renames its directory, and removes the files later. The caller holds the lock
        NAMES_LOCK.
        """
        # The broker has renamed this log's directory, so a new log can use the old name. In the manifest, the old name
        # then belongs to the new log. So this log must not change the manifest any more.
        self._manifest = None
        for segment in self._segments:
            together.update_parent_dir(segment.files, directory)


def entry_of(segment: Segment, next_offset: int) -> SegmentEntry:
    """Return the manifest entry that describes a segment. Raises OSError.

    The manifest is the broker's list of its files. `next_offset` is the offset at which the next segment begins.
    """
    found = segment.path.stat() if segment.path.exists() else None
    size, modified = (found.st_size, found.st_mtime_ns) if found else (0, 0)
    # If another process has changed the file, the time 0 makes the broker check the file at its next start.
    modified = 0 if segment.changes.found else modified
    aborted = segment.transaction_index
    sizes = (segment.offset_index.size, segment.time_index.size, aborted.size)
    return SegmentEntry(segment.base_offset, next_offset, size, modified, *sizes, aborted.checksum)
