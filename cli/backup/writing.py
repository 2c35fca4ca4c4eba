"""Write a new backup: a directory or a .tar file, with a checksum of each file.

While `new_backup` writes the backup PATH, the name of the backup is PATH.incomplete. The last file in the
backup is SHA256SUMS. It has the format of the command `sha256sum`: each line contains a checksum, two spaces
and the name of a file. `new_backup` then syncs all files, and renames PATH.incomplete to PATH. If a step fails,
for example because the disk is full, `new_backup` deletes PATH.incomplete. PATH.incomplete stays on the disk
only if the process is killed or the power fails.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO

from hmb.storage.files.durability import sync_directory

from ..shared.errors import CliError

CHECKSUMS = "SHA256SUMS"
INCOMPLETE = ".incomplete"
TAR = ".tar"
ONLY_OWNER = 0o600  # Records may be secret, so other users cannot read a backup.


class NewFile:
    """A file of a new backup. The object computes the file's checksum while the caller writes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._checksum = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self._checksum.update(data)
        self.size += len(data)

    @property
    def checksum(self) -> str:
        return self._checksum.hexdigest()


class NewBackup(ABC):
    """A backup that is being written. The caller writes one file after the other, and finally calls `finish`."""

    def __init__(self) -> None:
        self._checksums: dict[str, str] = {}

    @contextmanager
    def file(self, name: str) -> Iterator[NewFile]:
        """Open a new file with this name inside the backup. At the end of the `with` block, the file is complete."""
        with self._open(name) as opened:
            new = NewFile(opened)
            yield new
        self._checksums[name] = new.checksum

    def finish(self) -> None:
        """Write the checksums of all files, and sync the backup."""
        lines = "".join(f"{checksum}  {name}\n" for name, checksum in self._checksums.items())
        with self.file(CHECKSUMS) as file:
            file.write(lines.encode())
        self._sync()

    @abstractmethod
    def _open(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Open a new file for writing. At the end of the `with` block, add the file to the backup."""

    @abstractmethod
    def _sync(self) -> None:
        """Write all data to the disk."""


class NewBackupDirectory(NewBackup):
    """A new backup that is a directory."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        path.mkdir(mode=0o700)

    @contextmanager
    def _open(self, name: str) -> Iterator[BinaryIO]:
        path = self._path / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with open(path, "xb", opener=_private) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())

    def _sync(self) -> None:
        for directory in (*filter(Path.is_dir, self._path.iterdir()), self._path):
            sync_directory(directory)


class NewBackupTar(NewBackup):
    """A new backup that is a .tar file.

    In a .tar file, a file's size precedes its data. So the class first writes each file to a temporary file.
    """

    def __init__(self, file: BinaryIO, directory: Path) -> None:
        """Write to `file`, and create temporary files in `directory`."""
        super().__init__()
        self._file, self._directory = file, directory
        self._tar = tarfile.TarFile(fileobj=file, mode="w", format=tarfile.PAX_FORMAT)

    @contextmanager
    def _open(self, name: str) -> Iterator[BinaryIO]:
        with tempfile.TemporaryFile(dir=self._directory) as file:
            yield file
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = file.tell(), ONLY_OWNER, int(time.time())
            file.seek(0)
            self._tar.addfile(member, file)

    def _sync(self) -> None:
        self._tar.close()
        self._file.flush()
        os.fsync(self._file.fileno())


@contextmanager
def new_backup(path: Path) -> Iterator[NewBackup]:
    """Open a new backup at a temporary path, and yield it for writing. After the `with` block, rename it to `path`.

    Raises CliError if a file exists at one of the two paths, or if the backup cannot be written.
    """
    incomplete = path.with_name(path.name + INCOMPLETE)
    if path.exists():
        raise CliError(f"{path} exists; choose another path for the backup, or delete the existing file or folder")
    if incomplete.exists():
        hint = "if no other backup is running, delete this file or folder, and try again"
        raise CliError(f"{incomplete}: an earlier backup was interrupted, or is still running; {hint}")
    try:
        try:
            if path.suffix == TAR:
                with open(incomplete, "xb", opener=_private) as file:
                    yield from _finished(NewBackupTar(file, path.parent))
            else:
                yield from _finished(NewBackupDirectory(incomplete))
            incomplete.rename(path)
        except BaseException:  # An interrupted backup has no use, and on a full disk other files need its space.
            _delete(incomplete)
            raise
        sync_directory(path.parent)
    except ConnectionError:
        raise
    except OSError as error:
        raise CliError(f"{path}: cannot write the backup: {error.strerror or error}") from error


def _finished(backup: NewBackup) -> Iterator[NewBackup]:
    yield backup
    backup.finish()


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, ONLY_OWNER)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
