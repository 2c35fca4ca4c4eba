"""An existing backup: a directory or a .tar file. `verify` compares each file with its checksum."""

from __future__ import annotations

import hashlib
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..shared.errors import DAMAGE, NOT_FOUND, CliError
from .contents import CONTENTS, BackupContents, decode_contents
from .writing import CHECKSUMS

if TYPE_CHECKING:
    from hmb.records import Batch

CHUNK = 1024 * 1024  # bytes of one read


class Backup(ABC):
    """A backup that is open for reading."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def contents(self) -> BackupContents:
        return decode_contents(self._read(CONTENTS), str(self.path))

    def verify(self) -> dict[str, int]:
        """Check the files against their checksums. Return the size of each file in bytes. Raises CliError."""
        names = set(self._names())
        if CHECKSUMS not in names:
            what = f"no backup, or a backup that was interrupted: the file {CHECKSUMS} is missing"
            raise CliError(f"{self.path}: {what}", DAMAGE)
        expected = dict(self._expected())
        listed = {CONTENTS, *expected}
        for problem, found in (("is missing", listed - names), ("has no checksum", names - expected.keys())):
            if others := sorted(found - {CHECKSUMS}):
                raise CliError(f"{self.path}: the backup is damaged: {others[0]} {problem}", DAMAGE)
        return {name: self._check(name, checksum) for name, checksum in expected.items()}

    def batches(self, segment: str) -> Iterator[Batch]:
        """Yield the batches of a segment. Raises KafkaError if a batch is damaged."""
        from hmb.protocol.errors import corrupt_message
        from hmb.records.batch import MAGIC_POSITION
        from hmb.records.reading import batch_size, parse_batch

        with self._open(segment) as file:
            while start := file.read(MAGIC_POSITION + 1):
                if len(start) <= MAGIC_POSITION:
                    raise corrupt_message(f"{self.path}: {segment} ends in the middle of a batch")
                batch = parse_batch(start + file.read(batch_size(start) - len(start)))
                batch.check()
                yield batch

    def _expected(self) -> Iterator[tuple[str, str]]:
        for line in self._read(CHECKSUMS).decode(errors="replace").splitlines():
            checksum, separator, name = line.partition("  ")
            if not separator:
                raise CliError(f"{self.path}: the backup is damaged: {CHECKSUMS} has a line without a name", DAMAGE)
            yield name, checksum

    def _check(self, name: str, expected: str) -> int:
        """Return the size of a file in bytes. Raises CliError if the file does not have the checksum `expected`."""
        checksum, size = hashlib.sha256(), 0
        with self._open(name) as file:
            while chunk := file.read(CHUNK):
                checksum.update(chunk)
                size += len(chunk)
        if checksum.hexdigest() != expected:
            what = f"the SHA-256 checksum of {name} is {checksum.hexdigest()[:12]}..., not {expected[:12]}..."
            raise CliError(f"{self.path}: the backup is damaged: {what}", DAMAGE)
        return size

    def _read(self, name: str) -> bytes:
        with self._open(name) as file:
            return file.read()

    @abstractmethod
    def _names(self) -> list[str]:
        """Return the names of all files in the backup."""

    @abstractmethod
    def _open(self, name: str) -> IO[bytes]:
        """Open a file of the backup for reading."""


class BackupDirectory(Backup):
    """A backup that is a directory."""

    def _names(self) -> list[str]:
        return [path.relative_to(self.path).as_posix() for path in self.path.rglob("*") if path.is_file()]

    def _open(self, name: str) -> IO[bytes]:
        return (self.path / name).open("rb")


class BackupTar(Backup):
    """A backup that is a .tar file."""

    def __init__(self, path: Path, tar: tarfile.TarFile) -> None:
        super().__init__(path)
        self._tar = tar

    def _names(self) -> list[str]:
        return [member.name for member in self._tar.getmembers() if member.isfile()]

    def _open(self, name: str) -> IO[bytes]:
        file = self._tar.extractfile(name)
        assert file is not None  # `extractfile` returns None for a directory, but `name` is the name of a file.
        return file


@contextmanager
def opened(path: Path) -> Iterator[Backup]:
    """Open the backup at `path`. Raises CliError."""
    if not path.exists():
        raise CliError(f"{path}: no such backup", NOT_FOUND)
    if path.is_dir():
        yield BackupDirectory(path)
        return
    try:
        with tarfile.open(path, "r:") as tar:
            yield BackupTar(path, tar)
    except tarfile.TarError as error:
        raise CliError(f"{path}: not a backup, or a damaged .tar file: {error}", DAMAGE) from None
