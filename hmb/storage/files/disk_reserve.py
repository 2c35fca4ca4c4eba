"""The disk reserve: space that the broker keeps free, so that it can write even when the disk is full.

When the disk is full, producers get KAFKA_STORAGE_ERROR. But consumers still have to commit their offsets, and an
administrator has to delete records. For these requests, the broker must write a little: a record of 150 bytes in
`__consumer_offsets`, a checkpoint, or the list of topics.

When the broker starts, it allocates the file `.reserve`, which occupies up to 4 MiB of the disk. If the disk
becomes full later, the broker deletes this file. It then has free space for its own small writes, such as the
offsets that consumers commit.

When the disk becomes full, the broker uses the file `.reserve` in these steps:
1. A write fails because the disk is full. The broker deletes `.reserve`. If the file had 4 MiB, the broker now has
   space for more than 25,000 commits of offsets (150 bytes each).
2. The broker refuses the records of producers, so that only the broker's own writes use this space.
3. Once a second, the broker checks the free space. If it is at least twice the size of `.reserve`, the broker
   allocates the file again, and accepts records again without a restart.

The file `.reserve` has 4 MiB, or 1/64 of the disk if that is smaller (2 MiB on a disk of 128 MiB). If the disk
is full when the broker starts, the broker allocates the file later, as soon as the disk has enough space.
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
LARGEST = 4 << 20  # greatest size of the reserve, in bytes
SHARE = 64  # The reserve takes at most 1/64 of the disk.

T = TypeVar("T")


def is_disk_full(error: OSError) -> bool:
    """Return whether an operation failed because the disk is full or a quota is used up."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


class DiskReserve:
    """Disk space that is reserved for the broker's own writes to one data directory. Thread-safe."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / RESERVE_FILE
        self._lock = threading.Lock()  # guards the file and `is_used`; a thread that holds it takes no other lock
        # If `is_used` is True, the logs refuse records of producers. The initial value is True, because the reserve
        # file may be missing or too small until the method `fill` has checked it.
        self.is_used = True

    def fill(self) -> None:
        """If the disk has enough free space, allocate the reserve and set `is_used` to False.

        The free space is enough if it is at least twice the size of the reserve.
        """
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
                self._path.unlink(missing_ok=True)  # The disk has space, but the quota of the user is used up.
                return
            self.is_used = False
            LOGGER.info("%s: %d bytes of the disk are reserved", self._path.parent, size)

    def _allocated(self) -> int:
        """Return how many bytes of the disk the reserve file occupies."""
        return self._path.stat().st_blocks * 512 if self._path.exists() else 0

    def _allocate(self, size: int) -> None:
        with self._path.open("wb") as file:
            if hasattr(os, "posix_fallocate"):
                if size:
                    os.posix_fallocate(file.fileno(), 0, size)
            else:  # macOS
                file.write(bytes(size))

    def use(self, error: OSError) -> bool:
        """Return whether `error` means that the disk is full. If the disk is full, delete the reserve file.

        The reserve file occupies disk space that the broker keeps for its own writes. When the file is deleted, the
        broker can use this space.
        """
        if not is_disk_full(error):
            return False
        with self._lock:
            if not self.is_used:
                self.is_used = True
                self.report()
                self._path.unlink(missing_ok=True)
        return True

    def report(self) -> None:
        """Log that the disk is full."""
        LOGGER.error("the disk of %s is full: records are refused until space is free", self._path.parent)

    def write(self, write: Callable[[], T]) -> T:
        """Call `write`. If the disk is full, remove the reserve file to free its space, and call `write` again.

        Raises the errors that `write` raises.
        """
        try:
            return write()
        except OSError as error:
            if not self.use(error):
                raise
        return write()
