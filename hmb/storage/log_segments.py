"""The segments of a log, in the order of their offsets. The last one is the active segment.

A segment that retention or compaction takes out of the log is renamed at once, so that no start finds it again. Its
files are removed `file.delete.delay.ms` later, because a fetch may still read from them.

Source: Kafka's `LogSegments`.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from hmb.storage.config import LogConfig
from hmb.storage.segment import Segment
from hmb.storage.state.manifest import BEING_REPLACED, Manifest, SegmentEntry

LOGGER = logging.getLogger(__name__)


class LogSegments:
    """A log's segments, at least one. The log's lock guards the list. The cleanup's lock guards the rest."""

    def __init__(self, segments: Sequence[Segment], manifest: Manifest | None, partition: str) -> None:
        self._segments = list(segments)
        self._removed: deque[tuple[int, Segment]] = deque()  # (time in ms at which its files are deleted, segment)
        self._manifest = manifest
        self._partition = partition  # the partition's name in the manifest

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __len__(self) -> int:
        return len(self._segments)

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def active(self) -> Segment:
        return self._segments[-1]

    def from_offset(self, offset: int) -> list[Segment]:
        """Return the segment that contains `offset`, and all later ones; all segments if `offset` is below the log."""
        number = bisect_right(self._segments, offset, key=lambda segment: segment.base_offset) - 1
        return self._segments[max(0, number) :]

    def roll(self, end_offset: int, config: LogConfig, *, sync: bool) -> Segment:
        """Close the active segment, which is on disk, and add a new one at the log's end; return it. Raises OSError.

        The file is created now, because its name stores the next offset. Compaction may leave a gap before this offset.
        Without the name, a start would accept a batch after the gap only if another batch follows. `sync` makes the
        name survive a power cut.
        """
        self.active.close()  # The segment needs no descriptor until a client reads from it.
        # This entry is not synced to the disk. A power cut may lose it. The entry of the next segment is then lost as
        # well, and the next start checks this segment.
        self.note(self.active, end_offset, sync=False)
        segment = Segment(self.active.path.parent, end_offset, config)
        segment.make(sync=sync)
        self._segments.append(segment)
        return segment

    def take_first(self, count: int) -> list[Segment]:
        """Remove the oldest segments from the list, and return them."""
        taken, self._segments = self._segments[:count], self._segments[count:]
        return taken

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Replace neighboring segments by one segment in the list."""
        number = self._segments.index(old[0])
        self._segments[number : number + len(old)] = [new]

    def next_offset(self, segment: Segment, end_offset: int) -> int:
        """Return the base offset of the segment after this one, or `end_offset` for the active segment."""
        number = self._segments.index(segment) + 1
        return self._segments[number].base_offset if number < len(self._segments) else end_offset

    def remove_files(self, segments: Sequence[Segment], at: int) -> None:
        """Rename the files of removed segments. `delete_removed` deletes them at the time `at` (ms). Raises OSError."""
        for segment in segments:
            segment.mark_deleted()
            self._removed.append((at, segment))

    # -- the manifest

    def entries(self, end_offset: int) -> list[SegmentEntry]:
        """Return the entries of all segments of a log that ends at `end_offset`. Raises OSError."""
        next_offsets = [*(segment.base_offset for segment in self._segments[1:]), end_offset]
        return [segment.entry(after) for segment, after in zip(self._segments, next_offsets, strict=True)]

    def entries_at_stop(self, end_offset: int) -> list[SegmentEntry]:
        """Return the entries of a log that is closed and ends at `end_offset`. Raises OSError.

        The manifest has an entry for each closed segment. Only the sizes of the indexes may differ, if a reader has
        found damage in an index. If another process has changed a log file, the entry stays unchanged. The next start
        then notices the change.
        """
        known = (self._manifest.segments(self._partition) if self._manifest else None) or {}
        older = [
            known[segment.base_offset]._replace(
                index_size=segment.offset_index.size, time_index_size=segment.time_index.size
            )
            for segment in self._segments[:-1]
            if segment.base_offset in known
        ]
        return [*older, self.active.entry(end_offset)]

    def note(self, segment: Segment, next_offset: int, *, sync: bool = True) -> None:
        """Write a segment's entry into the manifest. The next segment begins at `next_offset`."""
        if self._manifest is None:
            return
        try:
            self._manifest.record({self._partition: [segment.entry(next_offset)]}, sync=sync)
        except OSError as error:  # The disk is full. The manifest writes the entry together with the next ones.
            LOGGER.warning("%s: %s", self._manifest.path, error)

    def forget(self, segments: Sequence[Segment]) -> None:
        """Remove segments from the manifest before their files are deleted."""
        if self._manifest is not None and segments:
            try:
                self._manifest.forget_segments(self._partition, [segment.base_offset for segment in segments])
            except OSError as error:  # The disk is full, so the segments are deleted anyway. A start may miss them.
                LOGGER.warning("%s: %s", self._manifest.path, error)

    def begin_replacement(self, old: Sequence[Segment], next_offset: int) -> None:
        """Note in the manifest that one segment is going to replace neighboring segments. Raises OSError."""
        if self._manifest is not None:
            entry = SegmentEntry(old[0].base_offset, next_offset, BEING_REPLACED, 0, 0, 0, 0, 0)
            self._manifest.replace_segments(self._partition, [segment.base_offset for segment in old], entry)

    def delete_removed(self, now: int | None = None) -> None:
        """Delete the files of removed segments that are due at `now` (ms); None deletes all. Raises OSError."""
        while self._removed and (now is None or self._removed[0][0] <= now):
            self._removed.popleft()[1].delete()

    def moved(self, directory: Path) -> None:
        """Note that the directory was renamed, because the log is deleted. The caller holds the lock NAMES."""
        self._manifest = None  # A new log of this name may use the manifest.
        for segment in self._segments:
            segment.moved(directory)
