"""The disk reserve: space that the broker keeps for its own writes, for the time when the disk is full.

Producers fill a disk, and then they get KAFKA_STORAGE_ERROR. But consumers still have to commit their offsets, and an
administrator has to delete records. These requests write a little, too: a record of 150 bytes in `__consumer_offsets`,
a checkpoint, the list of topics. So the broker allocates the file `.reserve` when it starts, 4 MiB that nobody reads:

1. A write fails because the disk is full. The broker removes the file. 4 MiB are free again: 25,000 commits.
2. From then on logs refuse what producers send, so that the space is left for the broker's own writes.
3. The broker looks once a second whether there is room for the file and for as much again. If so, it allocates the
   file, and takes records from producers again. Nobody has to restart it.

The reserve is at most 1/64 of the disk. A directory on a disk that is full at the start has none until there is room.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

LOGGER = logging.getLogger(__name__)
RESERVE_FILE = ".reserve"
LARGEST = 4 << 20  # bytes
SHARE = 64  # at most one part in so many of the disk

T = TypeVar("T")


def is_disk_full(error: OSError) -> bool:
    """Return whether an operation failed because the disk is full or a quota is used up."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


class DiskReserve:
    """The reserve of one data directory. Thread-safe."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / RESERVE_FILE
        self._lock = threading.Lock()  # guards the file and `is_used`; no other lock is taken under it
        self.is_used = True  # producers have to wait; `fill` ends that

    def fill(self) -> None:
        """Allocate the file if there is room for it and for as much again, or if it is there already."""
        with self._lock:
            if not self.is_used:
                return
            disk = os.statvfs(self._path.parent)
            size = min(LARGEST, disk.f_blocks * disk.f_frsize // SHARE)
            try:
                if self._allocated() < size:
                    if disk.f_bavail * disk.f_frsize < 2 * size:
                        return
                    self._allocate(size)
            except OSError as error:
                if not is_disk_full(error):
                    raise
                self._path.unlink(missing_ok=True)  # a quota is smaller than the disk
                return
            self.is_used = False
            LOGGER.info("%s: %d bytes of the disk are reserved", self._path.parent, size)

    def _allocated(self) -> int:
        """Return how many bytes of the disk the file has."""
        return self._path.stat().st_blocks * 512 if self._path.exists() else 0

    def _allocate(self, size: int) -> None:
        with self._path.open("wb") as file:
            if hasattr(os, "posix_fallocate"):
                if size:
                    os.posix_fallocate(file.fileno(), 0, size)
            else:  # macOS
                file.write(bytes(size))

    def use(self, error: OSError) -> bool:
        """Remove the file if `error` means that the disk is full; return whether it does."""
        if not is_disk_full(error):
            return False
        with self._lock:
            if not self.is_used:
                self.is_used = True
                LOGGER.error("the disk of %s is full: producers have to wait until there is room", self._path.parent)
                self._path.unlink(missing_ok=True)
        return True

    def write(self, write: Callable[[], T]) -> T:
        """Call `write`, and once more after the file was removed if the disk is full. Raises what `write` raises."""
        try:
            return write()
        except OSError as error:
            if not self.use(error):
                raise
        return write()
