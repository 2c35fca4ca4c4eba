"""Files that belong together: the log file of a segment and its indexes are renamed, deleted and closed in one step.

A start finds a segment by its log file. An index without its log file might be taken for the index of a later segment.
So each step changes the log file last: as long as an index has its old name, the log file has its old name, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from hmb.storage.files.virtual import VirtualFile

DELETED = ".deleted"  # the suffix of files that no start may open again


class FilesTogether(ABC):
    """Several files that are created, renamed and deleted together."""

    @property
    @abstractmethod
    def files(self) -> Sequence[VirtualFile]:
        """All files. The log file is the last one."""

    def rename(self, old_suffix: str, new_suffix: str) -> None:
        """Replace the suffix of each file's name. A thread that reads from a file continues to read. Raises OSError."""
        for file in self.files:
            if file.path.exists():  # An index may be missing. During a repair the log file may be missing, too.
                file.rename(file.path.with_name(file.path.name.removesuffix(old_suffix) + new_suffix))

    def moved(self, directory: Path) -> None:
        """Change the paths of the files after their directory was renamed. The caller holds NAMES."""
        for file in self.files:
            file.path = directory / file.path.name

    def mark_deleted(self) -> None:
        """Rename the files so that no start opens them again. Raises OSError."""
        self.rename("", DELETED)

    def delete(self) -> None:
        """Remove the files, which `mark_deleted` has renamed. Raises OSError."""
        for file in self.files:
            file.path.unlink(missing_ok=True)

    def release(self) -> None:
        """Close the files. Each file opens again when it is used. A thread that reads from a file continues to read."""
        for file in self.files:
            file.close()
