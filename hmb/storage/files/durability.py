"""State files that are replaced in one step, and syncs of directories.

A state file (a checkpoint, `meta.properties`) must be complete after a power cut: it has either its old or its new
content, never a part of each. So the broker writes it under a temporary name, syncs it, renames it over the old one,
and syncs the directory. The last step is needed because a name is an entry in the directory and not in the file. A new
segment's name needs the same sync of its directory before any batch in the segment is acknowledged.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hmb.storage.files.virtual import SyncFailed

SYNCS_AT_ONCE = 16


def sync_directory(path: Path) -> None:
    """Sync a directory, so that its names survive a power cut, or sync a file.

    Raises SyncFailed, and OSError if the directory cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise SyncFailed(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(descriptor)


def replace_file(path: Path, content: str | bytes) -> None:
    """Replace a small state file in one step. Raises OSError."""
    replace_files({path: content})


def replace_files(contents: Mapping[Path, str | bytes], *, sync: bool = True) -> None:
    """Replace each of these small state files in one step. Raises OSError.

    Without `sync` the old content may return after a power cut.
    """
    temporaries = {path.with_name(path.name + ".tmp"): content for path, content in contents.items()}
    try:
        for temporary, content in temporaries.items():
            with temporary.open("wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                if sync:
                    os.fsync(file.fileno())
        for temporary, path in zip(temporaries, contents, strict=True):
            temporary.rename(path)
    except OSError:
        for temporary in temporaries:
            temporary.unlink(missing_ok=True)  # If the disk is full, other writes need this file's blocks.
        raise
    for directory in {path.parent for path in contents} if sync else ():
        sync_directory(directory)


def sync_all(directories: Sequence[Path]) -> None:
    """Sync these directories and the files in them. Raises OSError.

    The caller has already written the files, so several syncs can run at the same time. This is much faster than one
    sync after each write, because one commit of the file system's journal covers all files that wait for it.
    """
    with ThreadPoolExecutor(min(len(directories), SYNCS_AT_ONCE)) as pool:
        list(pool.map(_sync_with_files, directories))


def _sync_with_files(directory: Path) -> None:
    for path in (*directory.iterdir(), directory):
        sync_directory(path)
