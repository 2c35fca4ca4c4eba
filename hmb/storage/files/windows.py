"""Reading a large file through a window: the part of the file that is in memory.

Recovery and compaction read whole segments, each of up to 1 GiB. A whole segment in memory would take too much space. A
memory map would not have this problem. But if another process cuts the file, the kernel kills each process that reads
the map after the new end of the file (SIGBUS). So the broker reads a window of 1 MiB, works on it, and reads the next
one::

    file     [ batch | batch | batch | batch | batch | batch ...
    window           [.........................]           the fifth batch begins in the window and ends after it,
                                     [....................  so the next window begins with it

If another process has cut the file, a window is shorter than expected. The code that reads the window then finds an
incomplete batch, as in any other damaged file.
"""

from __future__ import annotations

from collections.abc import Iterator

from hmb.storage.files.virtual import VirtualFile

WINDOW = 1 << 20  # bytes


class Windows:
    """A reader of a file's first `end` bytes. `view` is the part in memory, and `start` is its position in the file."""

    def __init__(self, file: VirtualFile, end: int) -> None:
        self._file = file
        self.end = end
        self.start = 0
        self.view = memoryview(b"")

    def at(self, position: int, size: int) -> tuple[memoryview, int]:
        """Return a view that contains the `size` bytes from `position` on, and the index of `position` in the view.

        Bytes are missing only at the end of the file. A caller that reads forwards, or backwards in whole batches,
        reads each byte of the file about once. Raises OSError.
        """
        index = position - self.start
        if index < 0 or index + size > len(self.view):
            if index >= 0:  # The caller reads forwards.
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
