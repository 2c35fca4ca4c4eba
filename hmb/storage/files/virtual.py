"""Virtual files: with them, the broker can use more files than its process may have open at the same time.

A log has at least three files for each segment, and a broker has thousands of segments. The system limits how many
files a process may have open (RLIMIT_NOFILE, often 1,024), and each connection also needs a descriptor.

Because the number of open files is limited, a segment does not keep its files open. Instead, the segment has a
`VirtualFile` for each file. The `VirtualFile` opens the file when the broker uses the file. `OPEN_FILES` limits the
number of open files. If too many files are open, `OPEN_FILES` closes a file that was not used recently.

If too many files are open, the *clock algorithm* closes a file that has no *mark*. Each write to a file gives
the file a mark. A read also gives the file a mark, unless the read had to open the file. So a file that was
read only once is closed earlier than a file that is used often.

The clock algorithm has its name from a picture: the open files form a circle, and a *hand* moves from file to file, as
on a clock. If the file at the hand has a mark, the hand removes the mark and moves on. If the file has no mark, the
hand closes it. In this example, the four files A to D are open, and the hand begins at A:
    the hand is at A    A marked   B          C marked   D      A loses its mark and stays open
    the hand is at B    A          B          C marked   D      B has no mark, so the hand closes B
    the hand is at C    A                     C marked   D      B is closed, so a thread can open another file

When the hand returns to a file, the file has a mark only if it was used after the hand's previous visit. So a
file that is used often stays open.

The algorithm LRU (least recently used) closes the file whose last use was longest ago. At each use of a file,
LRU must move the file to the end of a list. The clock algorithm is faster: it only marks the file.

This module avoids two errors:

- *A write into the wrong file.* Suppose that thread A stored only the number of its file's descriptor, 7.
  Thread B could then close this file, and open a different file, which also gets the number 7. Thread A would
  write into the wrong file. To prevent this, each thread holds a reference to the open file (`SharedFile`)
  while it uses the file. The file closes when no thread holds a reference.

- *An unnoticed loss of bytes.* The kernel keeps written bytes in memory and writes them to the disk later. If
  it cannot write them, the next sync of the file returns an error. But if the broker closes and reopens the
  file before this sync, the sync can succeed, although bytes are lost. The broker therefore syncs a file with
  unsynced bytes before it closes the file. A sync takes time, so the broker prefers to close a file without
  unsynced bytes.

After a failed sync, nobody knows what the disk contains. The kernel may have dropped the bytes that it could not write.
A second sync would then succeed, although these bytes are lost. So after a failed sync, each further write and sync of
this file raises `SyncFailed`.

Source: Corbató, "A paging experiment with the Multics system" (1968), for the clock algorithm; PostgreSQL's
`fd.c`, for virtual file descriptors.
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
# A thread holds this lock when it opens or renames a file. Without the lock, another thread could rename the file at
# this moment. The old name could then belong to a different file, and the first thread would open the wrong file.
NAMES_LOCK = threading.Lock()
OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)

Parts = Sequence[bytes | bytearray | memoryview]  # the buffers that one call of `write` writes to a file, in this order


class SyncFailed(OSError):
    """A sync of the file has failed, now or earlier, so nobody knows which of its bytes are on disk."""


class SharedFile(FileIO):
    """An open file, for reading and writing. The file closes when nobody holds a reference to this object any more."""

    def __init__(self, path: Path, *, is_new: bool) -> None:
        """Open the file. If `is_new`, create it (mode 0600). Raises OSError."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if is_new else 0)
        super().__init__(os.open(path, flags, 0o600), "r+")
        OPEN_FILES.descriptors.add(self.fileno())

    def close(self) -> None:
        if not self.closed:
            # Call `discard` before `close`. After `close`, another file can get the same descriptor, and `discard`
            # would then remove the descriptor of that file.
            OPEN_FILES.descriptors.discard(self.fileno())
            super().close()

    def __del__(self) -> None:
        self.close()


class VirtualFile:
    """A file that opens when it is used, and that `OPEN_FILES` may close between two uses. Thread-safe.

    `path` is the current path of the file. A rename of the file changes `path`.
    """

    __slots__ = ("__weakref__", "_file", "_is_used", "exists", "path")

    def __init__(self, path: Path, *, exists: bool) -> None:
        """Store the path. The first use opens the file, or creates it if `exists` is False."""
        self.path = path
        self.exists = exists
        self._file: SharedFile | None = None
        # The mark of a recently used file: if it is True, `close_one` sets it to False instead of closing the file.
        self._is_used = False

    def open(self) -> SharedFile:
        """Return the open file. If the file is closed, open it first. Raises OSError.

        Keep the result in a variable while you use its descriptor. When nothing refers to the result any more, Python
        closes the file.
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
                with NAMES_LOCK:
                    file = self._file
                    if file is None:
                        file = self._file = SharedFile(self.path, is_new=not self.exists)
                        self.exists = True
            except OSError as error:
                if error.errno not in OUT_OF_DESCRIPTORS or not OPEN_FILES.close_one():
                    raise
                continue
            # The read that opens a file does not count as a use. So the broker soon closes a file that is read only
            # once. Files with many uses stay open longer.
            self._is_used = False
            OPEN_FILES.add(self)
            if len(OPEN_FILES.descriptors) > OPEN_FILES.limit:  # Other threads have also opened files.
                OPEN_FILES.close_one()
            return file

    def read(self, size: int, position: int) -> bytes:
        """Return the `size` bytes from `position` on, or fewer bytes if the file ends earlier. Raises OSError."""
        file = self._file
        if file is None:
            file = self._open()
        else:
            self._is_used = True  # `open` does the same, but a call of `open` would slow down each read.
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

        After an error, the file may contain some of the bytes.
        """
        file = self._file or self._open()  # A call of `self.open()` here would work, but would slow down each append.
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
        """Rename the file. A thread that is reading the file can continue. Raises OSError."""
        with NAMES_LOCK:
            self.path = self.path.rename(path)

    def close(self) -> None:
        """Close the file. The next use opens it again."""
        if self._file is not None:
            OPEN_FILES.discard(self)
            self._file = None

    def close_if_idle(self, *, may_sync: bool) -> bool:
        """Close the file if it was not used since the last call of this method. Return whether the file was closed.

        A file with unsynced bytes is synced before it is closed. If `may_sync` is False, such a file stays open.
        """
        if self._is_used:
            self._is_used = False
            return False
        return self._close_idle(may_sync)

    def _close_idle(self, may_sync: bool) -> bool:
        self._file = None
        return True


@dataclass(slots=True)  # not frozen, because a frozen object takes three times as long to create
class FileRegion:
    """A part of a log file that a Fetch response contains: `size` bytes from `position` on.

    On a connection without TLS, the kernel sends these bytes with `sendfile`, so the broker does not read them.

    Another thread can delete the file before the broker sends it. If the file is still open, the client gets all
    bytes. If the broker has closed the file, because too many files were open, opening it again raises OSError. The
    client must then connect and fetch again.
    """

    file: VirtualFile
    position: int
    size: int

    def read(self) -> bytes:
        """Return the bytes of this region, or fewer bytes if the file ends earlier. Raises OSError."""
        return self.file.read(self.size, self.position)


class DurableFile(VirtualFile):
    """A virtual file whose content must survive a power cut. Thread-safe.

    Each file has two locks:

    - A thread holds `_writing` during a write, so that no other thread closes the file.
    - A thread holds `_syncing` during a sync, so that only one thread syncs the file at a time.

    A thread that needs both locks takes `_writing` first.

    If a sync fails, `_failure` contains the error, and all later writes and syncs of the file raise SyncFailed.
    """

    __slots__ = ("_failure", "_is_unsynced", "_syncing", "_writing")

    def __init__(self, path: Path, *, exists: bool) -> None:
        super().__init__(path, exists=exists)
        self._is_unsynced = False  # whether bytes were written after the last sync began
        self._failure: OSError | None = None  # the error of a failed sync; None if no sync has failed
        self._writing = threading.Lock()  # held during a write, so that `_close_idle` does not close the file meanwhile
        self._syncing = threading.Lock()  # held during a sync; guards `_failure`

    def write(self, parts: Parts, position: int) -> int:
        """Write all parts, like `VirtualFile.write`.

        Raises SyncFailed if an earlier sync of the file has failed. Raises another OSError if the write fails.
        """
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
        """Sync the file: write its bytes from the kernel's memory to the disk.

        Raises SyncFailed if this sync or any earlier sync of the file has failed. Raises OSError if the file
        cannot be opened. If opening fails, a later call can succeed.
        """
        if self._failure is not None:
            raise self._failed()
        # If too many files are open, `self.open` can sync and close any of them, in rare cases the file of `self`. To
        # sync this file, a thread takes the lock `_syncing`. A thread that already held the lock would wait forever. So
        # `self.open` runs before the thread takes the lock.
        file = self.open()
        with self._syncing:
            if self._failure is not None:
                raise self._failed()
            self._is_unsynced = False  # If a write follows during this sync, the write sets the flag again.
            try:
                os.fdatasync(file.fileno())
            except OSError as error:
                self._failure = error
                raise self._failed() from error

    def sync_if_written(self) -> None:
        """Sync the file if it has bytes that are not yet on disk. Raises the same errors as `sync`."""
        if self._is_unsynced or self._failure is not None:
            self.sync()

    def _failed(self) -> SyncFailed:
        assert self._failure is not None
        return SyncFailed(self._failure.errno, f"a sync has failed ({self._failure.strerror})", str(self.path))

    def _close_idle(self, may_sync: bool) -> bool:
        """Close the file, and return True.

        If a thread is writing, or if the file needs a sync and `may_sync` is False, leave the file open and return
        False.
        """
        if not self._writing.acquire(blocking=False):
            return False
        try:
            if self._is_unsynced:
                if not may_sync:
                    return False
                self.sync()
        except SyncFailed as error:  # The log gets this error from its next write or sync.
            LOGGER.error("%s", error)
        finally:
            self._writing.release()
        return super()._close_idle(may_sync)


def _write_rest(file: SharedFile, parts: Parts, position: int, written: int) -> None:
    """Write the bytes of `parts` after the first `written` bytes, because the first call of `pwritev` wrote too few."""
    data = memoryview(b"".join(parts))
    while written < len(data):
        written += os.pwrite(file.fileno(), data[written:], position + written)


class OpenFiles:
    """The open files of this process, usually at most `limit`. Thread-safe: callers need no lock.

    If too many files are open, this object closes one of them. If another thread is just reading this file, the
    descriptor stays open until the thread has finished. So the process can have more than `limit` open files for a
    short time.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.descriptors: set[int] = set()  # descriptors of all open files; `add` and `discard` of a set are atomic
        self._clock: OrderedDict[ref[VirtualFile], None] = OrderedDict()  # a queue: `close_one` takes the first file

    def add(self, file: VirtualFile) -> None:
        """Add an open file to the end of the queue. `close_one` takes files from the front of this queue."""
        self._clock[ref(file, self._forget)] = None

    def discard(self, file: VirtualFile) -> None:
        """Remove a file from the set of open files, because it is closed."""
        self._forget(ref(file))

    def _forget(self, file: ref[VirtualFile]) -> None:
        self._clock.pop(file, None)

    def make_room(self) -> None:
        """Close files until one more file may be opened, or until no file can be closed."""
        while len(self.descriptors) >= self.limit and self.close_one():
            pass

    def close_one(self) -> bool:
        """Close one file that was not used recently. Return False if no file can be closed."""
        for may_sync in (False, True):
            for _ in range(2 * len(self._clock)):  # The first pass clears `_is_used`. The second closes a file.
                try:
                    file = self._clock.popitem(last=False)[0]()
                except KeyError:  # Another thread has removed the last file.
                    return False
                if file is not None and file.close_if_idle(may_sync=may_sync):
                    return True
                if file is not None:
                    self.add(file)
        return False


OPEN_FILES = OpenFiles(340)  # about a third of 1,024, the usual limit of a process; a broker sets another limit
