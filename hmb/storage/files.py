"""Files the way a log wants them: regions for `sendfile`, state files replaced in one step, directories synced.

A state file (a checkpoint, `meta.properties`) must be there whole or as it was before, whenever the power goes.  So it
is written under a temporary name, synced, renamed over the old one, and the directory is synced, because a rename is an
entry in the directory and not in the file.  A new segment's name needs the same sync of its directory before anything
in it is acked.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

# Held for a moment while a file is opened by its name or gets another name, so that a reader never opens a name
# that has just gone, nor two of them the same file twice.
NAMES = threading.Lock()
SYNCS_AT_ONCE = 16


class SharedFile(FileIO):
    """An open file that is closed when its last holder lets go: a segment, or a fetch that still reads from it."""

    def __del__(self) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class FileRegion:
    """`size` bytes of an open file from `position`: what a fetch answers, without the bytes ever entering this process.

    It holds the open file, so a segment that is deleted meanwhile is read to its end all the same.
    """

    file: FileIO
    position: int
    size: int

    def read(self) -> bytes:
        return pread_fully(self.file, self.size, self.position)


def open_file(path: Path) -> SharedFile:
    """Open for reading and writing, unbuffered; made (0600) where it is missing, never truncated."""
    return SharedFile(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+")


def pread_fully(file: FileIO, size: int, position: int) -> bytes:
    """`size` bytes from `position`, fewer only at the end of the file."""
    data = os.pread(file.fileno(), size, position)
    if len(data) == size or not data:
        return data
    chunks = [data]
    while (missing := size - sum(map(len, chunks))) and (
        data := os.pread(file.fileno(), missing, position + size - missing)
    ):
        chunks.append(data)
    return b"".join(chunks)


@contextmanager
def open_directory(path: Path) -> Iterator[int]:
    """The descriptor of a directory, or of a file, to sync it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Make the names in a directory survive a power cut; or a file's content."""
    with open_directory(path) as descriptor:
        os.fsync(descriptor)


def replace_file(path: Path, content: str | bytes, *, sync: bool = True) -> None:
    """Write a small state file whole or not at all; without `sync` a power cut may take it away again."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        if sync:
            os.fsync(file.fileno())
    temporary.rename(path)
    if sync:
        sync_directory(path.parent)


def sync_all(directories: Sequence[Path]) -> None:
    """Make these directories and the files in them survive a power cut.

    To sync many files after they are all written, several at a time, is much faster than to sync each when it is
    written: a file system takes with one commit to its journal whatever waits for one.
    """
    with ThreadPoolExecutor(min(len(directories), SYNCS_AT_ONCE)) as pool:
        list(pool.map(_sync_with_files, directories))


def _sync_with_files(directory: Path) -> None:
    for path in (*directory.iterdir(), directory):
        sync_directory(path)
