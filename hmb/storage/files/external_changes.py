"""Detects changes that another process makes to a file while the broker appends to this file.

Only the broker is allowed to write to a log. If another process removes, replaces or cuts the active segment,
acknowledged records are lost. The broker would not notice the loss, because its writes to the open file still succeed.
So the broker checks the file of the active segment before each sync, before each roll, and when it stops.

A check compares the file of the active segment with the file's state at the previous check: the inode, the size and the
time of the last write. The check also compares the first and the last bytes of the last batch. A check needs two calls
of `stat` and four short reads.
"""

from __future__ import annotations

import errno
import logging
import os
from typing import NamedTuple

from hmb.records.reading import HEADER_PEEK
from hmb.storage.files.virtual import NAMES_LOCK, DurableFile, SyncFailed

LOGGER = logging.getLogger(__name__)


class FileState(NamedTuple):
    """The state of a file at one check: its size, the time of its last write (ns), and its last batch."""

    size: int
    modified: int
    position: int
    excerpts: bytes


class ExternalChanges:
    """Detects changes that other processes make to one file. Not thread-safe: no append may happen during a check."""

    def __init__(self, file: DurableFile) -> None:
        self._file = file
        self._seen: FileState | None = None
        self.found = False  # whether a check has found bytes that another process has changed

    def check(self, size: int, last_position: int) -> None:
        """Check whether another process has changed the file since the previous call.

        The broker has written `size` bytes to the file, and the last batch begins at `last_position`. If bytes have
        changed, the method logs an error, but only once. Raises SyncFailed if the file was removed, replaced or cut,
        because then records are lost.
        """
        path = self._file.path
        if not self._file.exists:
            return
        try:
            file = self._file.open()
            with NAMES_LOCK:  # While this thread holds the lock, no other thread renames the directory.
                found, named = os.fstat(file.fileno()), self._file.path.stat()
        except FileNotFoundError as error:
            raise SyncFailed(errno.ENOENT, "another process has removed the file", str(path)) from error
        if found.st_ino != named.st_ino:
            raise SyncFailed(errno.ENOENT, "another process has replaced the file", str(path))
        seen = self._seen
        now = self._excerpts(seen.position, seen.size) if seen else b""
        if found.st_size < size or (seen and seen.excerpts.startswith(now.rstrip(b"\0")) and now != seen.excerpts):
            raise SyncFailed(errno.EIO, "another process has cut the file", str(path))
        has_changed = seen and (now != seen.excerpts or (seen.size == size and seen.modified != found.st_mtime_ns))
        if has_changed and not self.found:
            self.found = True
            LOGGER.error("%s was changed by another process; the broker checks it at its next start", path)
        self._seen = FileState(size, found.st_mtime_ns, last_position, self._excerpts(last_position, size))

    def _excerpts(self, position: int, end: int) -> bytes:
        """Return the first and the last bytes of the batch from `position` to `end`.

        Another process may cut the end of the file while the broker has the file open. When the broker then appends,
        the file system fills the space between the new end and the appended bytes with zeros. The size of the file then
        does not show the cut, but the last bytes of the earlier batch are now zeros. The method `check` compares them
        with the bytes at its previous call, and so notices the cut.
        """
        return self._file.read(HEADER_PEEK, position) + self._file.read(HEADER_PEEK, max(position, end - HEADER_PEEK))
