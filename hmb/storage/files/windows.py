"""Reads a large file through a window, so that only a part of the file is in memory.

Recovery and compaction must read whole segments (up to 1 GiB by default). The broker does not load a whole
segment, because this would take too much memory. It does not use a memory map (`mmap`) either. If another
process made a mapped file shorter, an access beyond the new end would kill the broker (SIGBUS).

The broker reads a segment in parts of 1 MiB (*windows*). In the next drawing, window 1 ends in the middle of
the fifth batch. Window 2 begins with the fifth batch, so it contains the whole batch:
    file      [ batch | batch | batch | batch | batch | batch ...
    window 1  [...................................]
    window 2                                  [..................

While the broker reads a file, another process may make the file shorter. The broker then reads fewer bytes than
expected, so the last batch can be incomplete. The broker handles an incomplete batch like any other damaged batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Self

from hmb.storage.files.virtual import VirtualFile

WINDOW = 1 << 20  # bytes


class Windows:
    """Reads the first `end` bytes of a file through a window: only one part of the file is in memory at a time.

    `view` contains the bytes of the window, and `start` is the window's position in the file.
    """

    def __init__(self, file: VirtualFile, end: int) -> None:
        self._file = file
        self.end = end
        self.start = 0
        self.view = memoryview(b"")

    @classmethod
    def of(cls, file: VirtualFile) -> Self:
        """Return a `Windows` object that reads the whole file. A missing file counts as empty. Raises OSError."""
        try:
            end = os.fstat(file.open().fileno()).st_size if file.exists else 0
        except FileNotFoundError:
            end = 0
        return cls(file, end)

    def at(self, position: int, size: int) -> tuple[memoryview, int]:
        """Return `(view, index)`: the `size` bytes at `position` begin at `view[index]`.

        The view can also contain other bytes, because the method usually reads 1 MiB at once. If the file ends before
        `position + size`, the view ends with the last byte of the file.

        If a caller reads all batches in order, forwards or backwards, most bytes are read only once. Raises OSError.
        """
        index = position - self.start
        if index < 0 or index + size > len(self.view):
            if index >= 0:  # The wanted bytes are after the start of the view.
                start, end = position, position + max(WINDOW, size)
            else:
                start, end = max(0, min(position, position + size - WINDOW)), position + size
            self.view = memoryview(self._file.read(min(end, self.end) - start, start))
            self.start, index = start, position - start
        return self.view, index

    def chunks(self, position: int, end: int) -> Iterator[memoryview]:
        """Yield the bytes from `position` to `end` - 1, usually in parts of at most 1 MiB. Raises OSError."""
        while position < end:
            view, index = self.at(position, 1)
            chunk = view[index : index + end - position]
            if not chunk:
                return
            yield chunk
            position += len(chunk)
