"""Detects changes that another process makes to a file while the broker appends to this file.

Only the broker is allowed to write to a log. If another process removes, replaces or truncates the file of the
active segment, acknowledged records are lost. The broker would not notice the loss, because its writes to the
open file still succeed. So the broker checks this file before each sync, before it starts a new segment, and
when it stops.

A check finds several kinds of changes to the file of the active segment. If the file has been removed or has
another inode, another process has removed or replaced it. If the file is shorter than the broker expects,
another process has cut it. If the broker has appended nothing since the previous check, the time of the last
write must be the same. The check also reads the first and the last bytes of a batch again, and compares them
with the bytes that the previous check read. A check needs two calls of `stat` and four short reads.
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
    """Detects changes by other processes to one file. Not thread-safe: do not append during a check."""

    def __init__(self, file: DurableFile) -> None:
        self._file = file
        self._seen: FileState | None = None
        self.found = False  # whether a check has found bytes that another process has changed

    def check(self, size: int, last_position: int) -> None:
        """Check whether another process has changed the file since the previous call.

        `size` is the number of bytes that the broker has written to the file, and `last_position` is the position of
        the last batch. If another process has changed bytes, the method logs an error, but only the first time. If
        another process has removed, replaced or cut the file, records are lost, so the method raises SyncFailed.
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

        The method `check` compares these bytes with the bytes at its previous call, to detect that another process has
        cut the file. The size of the file is not enough for this. If the broker appends to the file after the cut, it
        still writes at the old end. The file system fills the gap before the new bytes with zeros, so the file is as
        long as expected. But the last bytes of the earlier batch are now zeros.
        """
        return self._file.read(HEADER_PEEK, position) + self._file.read(HEADER_PEEK, max(position, end - HEADER_PEEK))
