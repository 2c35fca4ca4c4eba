"""Replaces a state file in one step, and syncs directories, so that files and their names survive a power cut.

A power cut must not leave a state file, such as a checkpoint or `meta.properties`, half written. After the power cut,
the file must contain either all of its old content or all of its new content. The broker therefore replaces a state
file in four steps:
1. It writes the new content into a file with a temporary name.
2. It syncs this file.
3. It renames this file to the name of the old file.
4. It syncs the directory, because the directory, and not the file, contains the file's name.

The name of a new segment's file is stored in the directory, and not in the file. So the broker syncs the directory
before it acknowledges the first batch in the segment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from hmb.storage.files.virtual import SyncFailed

SYNCS_AT_ONCE = 16


def sync_directory(path: Path) -> None:
    """Sync a directory, so that the names of its files survive a power cut.

    If `path` is a file, sync this file instead of a directory.

    Raises SyncFailed if the sync fails, and OSError if `path` cannot be opened.
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
    """Replace the contents of small state files. Each single file changes in one step. Raises OSError.

    Only the owner can read the new files. If `sync` is False, a power cut can bring old contents back.
    """
    temporaries = {path.with_name(path.name + ".tmp"): content for path, content in contents.items()}
    try:
        for temporary, content in temporaries.items():
            with temporary.open("wb") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                if sync:
                    os.fsync(file.fileno())
        for temporary, path in zip(temporaries, contents, strict=True):
            temporary.rename(path)
    except OSError:
        for temporary in temporaries:
            temporary.unlink(missing_ok=True)  # On a full disk, other writes need this space.
        raise
    for directory in {path.parent for path in contents} if sync else ():
        sync_directory(directory)


def sync_all(directories: Sequence[Path]) -> None:
    """Sync these directories and the files in them, several at the same time. Raises OSError.

    Several syncs at the same time are much faster than one sync after another. The file system can then write
    several files to the disk together, with one commit of its journal.
    """
    if len(directories) == 1:
        _sync_with_files(directories[0])
        return
    from concurrent.futures import ThreadPoolExecutor  # Only a topic with several partitions needs this import of 3 ms.

    with ThreadPoolExecutor(min(len(directories), SYNCS_AT_ONCE)) as pool:
        list(pool.map(_sync_with_files, directories))


def _sync_with_files(directory: Path) -> None:
    for path in (*directory.iterdir(), directory):
        sync_directory(path)
