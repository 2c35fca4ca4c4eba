"""The lock of a data directory: only one broker may use the directory.

If two brokers used the same directory, they would assign the same offsets to different records. So a broker locks the
directory before it reads anything in it. When the broker's process ends, normally or by a crash, the kernel releases
the lock.

HMB locks the directory itself (`flock`). A lock on a file in the directory would not be enough: if a user
removed the file, a second broker could create a new file and lock it.

Kafka locks only the file `.lock` in the directory. So HMB locks this file as well, with the same kind of lock
(`lockf`). HMB and Kafka therefore cannot use the directory at the same time.

Some file systems, for example NFS, cannot lock directories. On these file systems, HMB locks only the file `.lock`.

A user may move the directory of a running broker, and create a new directory with the old name for a second broker. The
first broker would then write its checkpoints into the directory of the second broker. The method `check` notices that
the directory was replaced.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
from pathlib import Path

LOGGER = logging.getLogger(__name__)
LOCK_FILE = ".lock"


class DirectoryInUse(Exception):
    """The error for a directory that another broker has locked."""


class DirectoryLock:
    """A lock on a data directory. The object holds the lock from its creation until `release`."""

    def __init__(self, directory: Path) -> None:
        """Lock the directory. Raises DirectoryInUse, OSError."""
        self._directory = directory
        self._descriptors = [os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        try:
            self._lock_directory()
            self._descriptors.append(os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            fcntl.lockf(self._descriptors[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:
            self.release()
            if error.errno in (errno.EAGAIN, errno.EACCES) and error.filename is None:  # Another process holds a lock.
                raise DirectoryInUse from None
            raise
        except OSError:
            self.release()
            raise

    def _lock_directory(self) -> None:
        try:
            fcntl.flock(self._descriptors[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError as error:
            LOGGER.warning("the broker cannot lock the directory %s (%s), and locks only the file %s in the directory: "
                           "do not remove this file",
                           self._directory, error.strerror, LOCK_FILE)  # fmt: skip

    def check(self) -> None:
        """Raise OSError if a user has moved, removed or replaced the locked directory."""
        if not os.path.samestat(self._directory.stat(), os.fstat(self._descriptors[0])):
            raise OSError(errno.ESTALE, "another directory has replaced this broker's directory", str(self._directory))

    def release(self) -> None:
        """Release the lock. After this call, no thread may call `check`."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()
