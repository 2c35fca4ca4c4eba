"""The segments of a log, in the order of their offsets. The last one is the active segment.

A segment that retention or compaction takes out of the log is renamed at once, so that no start finds it again. Its
files are removed `file.delete.delay.ms` later, because a fetch may still read from them.

Source: Kafka's `LogSegments`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from hmb.storage.segment import Segment


class LogSegments:
    """A log's segments, at least one. Not thread-safe: the log's lock guards the list, its `cleanup_lock` the rest."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments = list(segments)
        self._removed: deque[tuple[int, Segment]] = deque()  # with the time (ms) at which the files are deleted

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
        """Return the segment that holds `offset`, and all later ones; all if every record has a greater offset."""
        number = bisect_right(self._segments, offset, key=lambda segment: segment.base_offset) - 1
        return self._segments[max(0, number) :]

    def append(self, segment: Segment) -> None:
        """Add a new active segment."""
        self._segments.append(segment)

    def take_first(self, count: int) -> list[Segment]:
        """Take the oldest segments out of the list, and return them."""
        taken, self._segments = self._segments[:count], self._segments[count:]
        return taken

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Put one segment in the place of neighbors."""
        number = self._segments.index(old[0])
        self._segments[number : number + len(old)] = [new]

    def remove_files(self, segment: Segment, at: int) -> None:
        """Rename the files of a segment that is no longer in the list; delete them at a time (ms). Raises OSError."""
        segment.mark_deleted()
        self._removed.append((at, segment))

    def delete_removed(self, now: int | None = None) -> None:
        """Delete the files whose time (ms) has come; None: all. Raises OSError."""
        while self._removed and (now is None or self._removed[0][0] <= now):
            self._removed.popleft()[1].delete()

    def moved(self, directory: Path) -> None:
        """Note that the directory was renamed. The caller holds NAMES."""
        for segment in self._segments:
            segment.moved(directory)
