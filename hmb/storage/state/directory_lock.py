"""The lock of a data directory: only one broker works in it.

Two brokers in one directory would assign the same offsets to different records. So a broker locks the directory before
it reads anything there, and the kernel releases the lock when the process ends, however it ends.

The lock is on the directory itself (`flock`). A lock file alone is not enough: if somebody removes it, a second broker
creates another file under the same name, and locks that. Kafka's broker locks only the file `.lock`. So HMB locks this
file, too, in the same way as Java (`lockf`). On a file system that cannot lock directories, for example NFS, HMB holds
only the lock on the file.

Somebody may also move the directory away, and start another broker with a new directory under the old name. The first
broker would then write its checkpoints among the files of the second. `check` notices that.
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
    """Another broker has locked the directory."""


class DirectoryLock:
    """A lock on a data directory. It is held until `release`."""

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
            LOGGER.warning("the directory %s cannot be locked (%s), only the file %s in it: do not remove that file",
                           self._directory, error.strerror, LOCK_FILE)  # fmt: skip

    def check(self) -> None:
        """Raise OSError if another directory has the name of the locked one."""
        if not os.path.samestat(self._directory.stat(), os.fstat(self._descriptors[0])):
            raise OSError(errno.ESTALE, "another directory has replaced this broker's directory", str(self._directory))

    def release(self) -> None:
        """Release the lock. After this call no thread may call `check`."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()
