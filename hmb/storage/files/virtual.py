"""Virtual files: more files than the process may have open at the same time.

A log has at least three files for each segment, and a broker has thousands of segments. The system limits how many
files a process may have open (RLIMIT_NOFILE, often 1,024), and each connection needs a descriptor, too. So a segment
does not keep its files open. It keeps a `VirtualFile`, which opens the file when the broker uses it. `OPEN_FILES`
limits how many are open. When there are too many, it closes one that was not used recently.

The clock algorithm chooses the file to close. The open files form a circle::

        A used        A         A: its mark is removed, it gets a second chance
      D       B     D   B       B: it has no mark, so it is closed
        C used        C

Each use of a file sets a mark, which costs less than moving the file in a list. A *hand* moves around the circle and
looks at one file after the other. If the file has a mark, the hand removes the mark. If the file has no mark, the hand
closes the file.

Two traps:

- *A descriptor number is reused at once.* A thread that keeps only the number may write into a file that was opened
  later. So each user holds the `SharedFile` itself while it works, and the last holder closes it.
- *A closed file forgets errors.* The kernel writes dirty pages to the disk later. If that fails, it reports the error
  to the next sync of a descriptor that was open. A descriptor that was opened after the failure may get no error, and
  its sync would seem to succeed. So a file with unsynced writes is synced before it is closed. The hand prefers files
  that need no sync.

After a failed sync nobody knows what the disk contains: the kernel may have dropped the pages, and a second sync would
succeed without them. So a file whose sync has failed raises `SyncFailed` at each later write and sync.

Source: the clock algorithm, Corbató, "A paging experiment with the Multics system" (1968); PostgreSQL's virtual file
descriptors (`fd.c`).
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from weakref import ref

LOGGER = logging.getLogger(__name__)
# A thread holds this lock while it opens a file by its name or renames a file. Without the
# lock a reader could open a different file that has just got this name.
NAMES = threading.Lock()
OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)

Parts = Sequence[bytes | bytearray | memoryview]  # the buffers of one write, in order


class SyncFailed(OSError):
    """A sync of a file has failed, now or earlier. Nobody knows which of its bytes are on disk."""


class SharedFile(FileIO):
    """An open file, for reading and writing. It closes when its last holder drops it."""

    def __init__(self, path: Path, *, is_new: bool) -> None:
        """Open the file. If `is_new`, create it (mode 0600). Raises OSError."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if is_new else 0)
        super().__init__(os.open(path, flags, 0o600), "r+")
        OPEN_FILES.descriptors.add(self.fileno())

    def close(self) -> None:
        if not self.closed:
            OPEN_FILES.descriptors.discard(self.fileno())  # After `close` another file may get this number.
            super().close()

    def __del__(self) -> None:
        self.close()


class VirtualFile:
    """A file that is open only while the process has descriptors for it. Thread-safe.

    `path` changes when the file is renamed.
    """

    __slots__ = ("__weakref__", "_file", "_is_used", "exists", "path")

    def __init__(self, path: Path, *, exists: bool) -> None:
        """Do not open the file yet. The first use opens it, or creates it if it does not exist."""
        self.path = path
        self.exists = exists
        self._file: SharedFile | None = None
        self._is_used = False  # the mark of the clock algorithm

    def open(self) -> SharedFile:
        """Return the open file. If it is closed, open it first. Raises OSError.

        Keep the result in a variable as long as you use its descriptor.
        """
        file = self._file
        if file is None:
            return self._open()
        self._is_used = True
        return file

    def _open(self) -> SharedFile:
        while True:
            OPEN_FILES.make_room()
            try:
                with NAMES:
                    file = self._file
                    if file is None:
                        file = self._file = SharedFile(self.path, is_new=not self.exists)
                        self.exists = True
            except OSError as error:
                if error.errno not in OUT_OF_DESCRIPTORS or not OPEN_FILES.close_one():
                    raise
                continue
            self._is_used = False  # Only the second use sets the mark, so a file that is used once is closed first.
            OPEN_FILES.add(self)
            if len(OPEN_FILES.descriptors) > OPEN_FILES.limit:  # other threads have opened files at the same time
                OPEN_FILES.close_one()
            return file

    def read(self, size: int, position: int) -> bytes:
        """Return `size` bytes from `position`, fewer only at the end of the file. Raises OSError."""
        file = self.open()
        data = os.pread(file.fileno(), size, position)
        if len(data) == size or not data:
            return data
        chunks = [data]
        while (missing := size - sum(map(len, chunks))) and (
            data := os.pread(file.fileno(), missing, position + size - missing)
        ):
            chunks.append(data)
        return b"".join(chunks)

    def write(self, parts: Parts, position: int) -> int:
        """Write all parts from `position` on, and return their total size in bytes. Raises OSError.

        After an error some of the bytes may be in the file.
        """
        file = self._file or self._open()  # This line repeats `open`, because a call takes time at each append.
        self._is_used = True
        written, size = os.pwritev(file.fileno(), parts, position), sum(map(len, parts))
        if written < size:
            _write_rest(file, parts, position, written)
        return size

    def truncate(self, size: int) -> None:
        """Cut the file, or extend it with zeros. Raises OSError."""
        file = self.open()
        os.ftruncate(file.fileno(), size)

    def rename(self, path: Path) -> None:
        """Rename the file. A thread that reads from it can continue. Raises OSError."""
        with NAMES:
            self.path = self.path.rename(path)

    def close(self) -> None:
        """Close the file. The next use opens it again."""
        if self._file is not None:
            OPEN_FILES.discard(self)
            self._file = None

    def close_if_idle(self, *, may_sync: bool) -> bool:
        """Close the file if it was not used since the last call. Return whether it is closed.

        A file with unsynced writes is closed only if the caller `may_sync` it.
        """
        if self._is_used:
            self._is_used = False
            return False
        return self._close_idle(may_sync)

    def _close_idle(self, may_sync: bool) -> bool:
        self._file = None
        return True


@dataclass(frozen=True, slots=True)
class FileRegion:
    """The records in a Fetch response: `size` bytes of a file from `position` on.

    The kernel sends them to the client with `sendfile`, so the bytes never enter this process. If the segment is
    deleted before that, its file is usually still open, and the client gets all bytes. If the file was closed because
    other files needed its descriptor, sending raises OSError. The client then has to connect and fetch again.
    """

    file: VirtualFile
    position: int
    size: int

    def read(self) -> bytes:
        """Return the bytes of the region, or fewer bytes if the file is shorter. Raises OSError."""
        return self.file.read(self.size, self.position)


class DurableFile(VirtualFile):
    """A virtual file whose content must survive a power cut. Thread-safe.

    Locks: a thread holds `_writing` while it writes, so that no other thread closes the file during the write. A thread
    holds `_syncing` while it syncs, so that each thread that asks for a sync gets the error. A thread that needs both
    locks takes `_writing` first.
    """

    __slots__ = ("_failure", "_is_unsynced", "_syncing", "_writing")

    def __init__(self, path: Path, *, exists: bool) -> None:
        super().__init__(path, exists=exists)
        self._is_unsynced = False  # whether bytes were written since the last sync
        self._failure: OSError | None = None  # the error of the sync that failed; None: no sync has failed
        self._writing = threading.Lock()
        self._syncing = threading.Lock()

    def write(self, parts: Parts, position: int) -> int:
        """Write all parts, as `VirtualFile.write` does. Raises SyncFailed if an earlier sync has failed, OSError."""
        with self._writing:
            if self._failure is not None:
                raise self._failed()
            self._is_unsynced = True
            return VirtualFile.write(self, parts, position)

    def truncate(self, size: int) -> None:
        """Cut the file, or extend it with zeros. Raises SyncFailed, OSError."""
        with self._writing:
            if self._failure is not None:
                raise self._failed()
            self._is_unsynced = True
            super().truncate(size)

    def sync(self) -> None:
        """Return when the bytes that were written so far are on disk.

        Raises SyncFailed if this sync or an earlier one has failed. Raises OSError if the file cannot be opened.
        After an OSError the next call may succeed.
        """
        with self._syncing:
            if self._failure is not None:
                raise self._failed()
            file = self.open()
            self._is_unsynced = False  # A write after this line needs another sync.
            try:
                os.fdatasync(file.fileno())
            except OSError as error:
                self._failure = error
                raise self._failed() from error

    def sync_if_written(self) -> None:
        """Sync the file if bytes were written since the last sync. Raises the same errors as `sync`."""
        if self._is_unsynced or self._failure is not None:
            self.sync()

    def _failed(self) -> SyncFailed:
        assert self._failure is not None
        return SyncFailed(self._failure.errno, f"a sync has failed ({self._failure.strerror})", str(self.path))

    def _close_idle(self, may_sync: bool) -> bool:
        """Close the file. Return False if a write is in progress, or if a sync is needed and `may_sync` is False."""
        if not self._writing.acquire(blocking=False):
            return False
        try:
            if self._is_unsynced:
                if not may_sync:
                    return False
                self.sync()
        except SyncFailed as error:  # The log gets the error at its next write or sync.
            LOGGER.error("%s", error)
        finally:
            self._writing.release()
        return super()._close_idle(may_sync)


def _write_rest(file: SharedFile, parts: Parts, position: int, written: int) -> None:
    """Write the rest of the bytes, if one call of `pwritev` did not write all of them."""
    data = memoryview(b"".join(parts))
    while written < len(data):
        written += os.pwrite(file.fileno(), data[written:], position + written)


class OpenFiles:
    """The files that are open in this process, at most `limit`. Thread-safe, without a lock of its own.

    A file that is closed while a thread still reads from it counts until that thread drops it. So the number may exceed
    `limit` by one for each thread.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.descriptors: set[int] = set()  # descriptors of all `SharedFile`s; `add` and `discard` of a set are atomic
        self._clock: OrderedDict[ref[VirtualFile], None] = OrderedDict()  # `close_one` looks at the first file first

    def add(self, file: VirtualFile) -> None:
        """Add a file that has been opened. `close_one` looks at this file last."""
        self._clock[ref(file, self._forget)] = None

    def discard(self, file: VirtualFile) -> None:
        """Remove a file that has been closed."""
        self._forget(ref(file))

    def _forget(self, file: ref[VirtualFile]) -> None:
        self._clock.pop(file, None)

    def make_room(self) -> None:
        """Close files until one more file may be opened, or until no file can be closed."""
        while len(self.descriptors) >= self.limit and self.close_one():
            pass

    def close_one(self) -> bool:
        """Close the first file that was not used recently. Return False if no file can be closed."""
        for may_sync in (False, True):
            for _ in range(2 * len(self._clock)):  # The first pass clears the marks of use, the second one closes.
                try:
                    file = self._clock.popitem(last=False)[0]()
                except KeyError:  # Another thread has removed the last file.
                    return False
                if file is not None and file.close_if_idle(may_sync=may_sync):
                    return True
                if file is not None:
                    self.add(file)
        return False


OPEN_FILES = OpenFiles(340)  # a third of 1,024, the usual limit of a process; a broker sets its own
