"""Detects changes that another process makes to a file while the broker appends to this file.

Only the broker is allowed to write to a log. If another process removes, replaces or truncates the file of the
active segment, acknowledged records are lost. The broker would not notice the loss, because its writes to the
open file still succeed. So the broker checks this file before each sync, before it starts a new segment, and
when it stops.

A check finds these changes that another process has made to the file of the active segment:
- The file was removed, or another file has its name (the inode is different).
- The file is shorter than the broker expects.
- The time of the last write is different, although the broker has appended nothing since the previous check.
- The first or the last bytes of a batch are different. Each check stores these bytes of the newest batch, and
  the next check compares them with the file.
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
    """Detects changes to a file by other processes. Not thread-safe: no thread may write during `check`."""

    def __init__(self, file: DurableFile) -> None:
        self._file = file
        self._seen: FileState | None = None
        self.found = False  # whether a check has found bytes that another process has changed

    def check(self, size: int, last_position: int) -> None:
        """Check whether another process has changed the file since the previous call.

        `size` is the number of bytes that the broker has written to the file. The last batch begins at `last_position`.

        If another process has changed bytes, the method logs an error, but only the first time. If another process has
        removed, replaced or cut the file, records are lost, so the method raises SyncFailed.
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
        """Return the first and the last HEADER_PEEK bytes of the batch from `position` to `end`.

        The method `check` uses these bytes to detect a cut. For example, a file has 1,000 bytes. Another process cuts
        it to 600 bytes. The broker appends its next batch at position 1,000, and the file system fills the gap from 600
        to 999 with zeros. The size of the file looks right. But the last bytes of the earlier batch are now zeros.
        """
        return self._file.read(HEADER_PEEK, position) + self._file.read(HEADER_PEEK, max(position, end - HEADER_PEEK))
