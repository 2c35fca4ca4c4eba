"""Reading a large file through a window: a part of it that is in memory.

Recovery and compaction go through whole segments, of a gigabyte each. To read a segment at once would take too much
memory. A memory map would take none. But if another process cuts the file, the kernel kills a process that touches the
map behind the new end (SIGBUS). So the broker reads a window of 1 MiB, works on it, and reads the next one::

    file     [ batch | batch | batch | batch | batch | batch ...
    window           [.........................]           the fifth batch begins in the window and ends after it,
                                     [....................  so the next window begins with it

A window that the file no longer fills is shorter than expected. Its reader finds a batch that is cut off, as in every
other damaged file.
"""

from __future__ import annotations

from collections.abc import Iterator

from hmb.storage.files.virtual import VirtualFile

WINDOW = 1 << 20  # bytes


class Windows:
    """The first `end` bytes of a file. `view` is the part that is in memory; it starts at the position `start`."""

    def __init__(self, file: VirtualFile, end: int) -> None:
        self._file = file
        self.end = end
        self.start = 0
        self.view = memoryview(b"")

    def at(self, position: int, size: int) -> tuple[memoryview, int]:
        """Return a view with `size` bytes from `position` in it, and the index of `position` in the view.

        The view ends earlier only where the file does. A caller that goes forwards, or backwards in whole batches,
        reads each byte of the file about once. Raises OSError.
        """
        index = position - self.start
        if index < 0 or index + size > len(self.view):
            if index >= 0:  # forwards
                start, end = position, position + max(WINDOW, size)
            else:
                start, end = max(0, min(position, position + size - WINDOW)), position + size
            self.view = memoryview(self._file.read(min(end, self.end) - start, start))
            self.start, index = start, position - start
        return self.view, index

    def chunks(self, position: int, end: int) -> Iterator[memoryview]:
        """Return the bytes from `position` to `end`, a window at a time. Raises OSError."""
        while position < end:
            view, index = self.at(position, 1)
            chunk = view[index : index + end - position]
            if not chunk:
                return
            yield chunk
            position += len(chunk)
