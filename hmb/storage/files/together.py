"""Files that belong together: one function call renames, deletes or closes the log file and the indexes of a segment.

`delete` removes the log file of a segment last, after the indexes. `rename` renames the log file last. If a
crash interrupts one of these functions, each index that is not yet deleted or renamed still has its log file.
An index without its log file would be dangerous: a later segment with the same base offset would use this
index.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hmb.storage.files.virtual import VirtualFile

DELETED = ".deleted"  # suffix of files that the broker must not load when it starts

Files = Sequence[VirtualFile]  # the files of a segment, with the log file as the last one


def rename(files: Files, old_suffix: str, new_suffix: str) -> None:
    """Replace the suffix of each file's name. Threads can read the files during the rename. Raises OSError."""
    for file in files:
        if file.path.exists():  # An index may be missing. During a repair the log file may be missing, too.
            file.rename(file.path.with_name(file.path.name.removesuffix(old_suffix) + new_suffix))


def update_parent_dir(files: Files, directory: Path) -> None:
    """Change the paths of the files after their directory was renamed. The caller holds the lock NAMES_LOCK."""
    for file in files:
        file.path = directory / file.path.name


def mark_deleted(files: Files) -> None:
    """Rename the files, so that the broker does not load them when it starts. Raises OSError."""
    rename(files, "", DELETED)


def delete(files: Files) -> None:
    """Remove files that `mark_deleted` has renamed. Raises OSError."""
    for file in files:
        file.path.unlink(missing_ok=True)


def release(files: Files) -> None:
    """Close each file as soon as no thread is reading it. The next use of the file opens it again."""
    for file in files:
        file.close()
