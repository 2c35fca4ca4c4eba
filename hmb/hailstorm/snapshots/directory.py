"""Snapshots in a directory: one file for each snapshot.

The directory of a store contains these files:
    <directory>/topology.json     a JSON object with three values: `fingerprint` describes the topology, `epoch` counts
                                  the starts of the topology, and `completed` contains the offsets of the newest
                                  snapshot that all processors have saved
    <directory>/lock              a file that a process locks while it checks the epoch
    <directory>/count-0/00000000000000000007.snapshot   snapshot number 7 of the processor count-0

The layout of a snapshot file, with big-endian integers:
    magic           4 bytes   HAIL
    version         uint8     1
    crc             uint32    CRC-32C of everything after it
    header length   uint32
    header          bytes     the list [epoch, processor, clock], encoded by hailstorm/codec.py
    state           bytes     up to the end of the file

The store writes a snapshot file under a temporary name that no other file has. It syncs the file to the disk,
renames it to a name with the suffix `.snapshot`, and syncs the directory. So a file with this suffix is
always complete, even after a crash. The CRC detects damage that happens later on the disk.

Each new snapshot of a processor has a higher number in its file name than the existing ones. A crash can
leave temporary files (`.tmp`). When a new epoch begins, the store deletes them.

After the store has written a snapshot file, it takes a lock, checks the epoch, and renames the file. While a
process holds the lock, no new epoch can begin. For example, a process of epoch 4 hangs before it takes the
lock, and epoch 5 begins. When the process continues, the check raises StaleEpochError, so the process does
not rename its file.

It can take long to write a large state. The store therefore takes its lock only after it has written the snapshot file.
If a process hangs while it holds the lock, no other process can save a snapshot. A process waits at most 10 seconds
for the lock, and then raises SnapshotError.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from crc32c import crc32c

from hmb.hailstorm.clock import Clock
from hmb.hailstorm.codec import decode, encode
from hmb.hailstorm.errors import CodecError, SnapshotError
from hmb.hailstorm.snapshots.store import Fingerprint, SnapshotListing, check_epoch, check_fingerprint

MAGIC = b"HAIL\x01"
PREFIX = struct.Struct(">5sII")  # magic with version, CRC, header length
SUFFIX = ".snapshot"
LOCK_TIMEOUT = 10.0  # the longest time (s) that a process waits for the lock of the snapshot store


class SnapshotFile(NamedTuple):
    """The contents of a snapshot file whose checksum is correct."""

    path: Path
    epoch: int
    processor: str
    clock: Clock
    state: bytes


class DirectorySnapshotStore:
    """A snapshot store in a directory. All processes that can reach the directory can use it."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self.location = str(self.directory.absolute())  # the path with which another process opens this store
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            advice = "name a directory, or an SQLite file that ends in .db"
            raise SnapshotError(f"the file {self.directory} is not a snapshot store: {advice}") from error
        except OSError as error:
            raise SnapshotError(f"the snapshot store {self.directory} cannot be made: {error.strerror}") from error

    def claim(self, fingerprint: Fingerprint) -> None:
        with self._locked():
            notes = self._notes()
            check_fingerprint(notes.get("fingerprint"), fingerprint, str(self.directory))
            if "fingerprint" not in notes:
                self._write_notes({**notes, "fingerprint": fingerprint})

    def begin_epoch(self) -> int:
        with self._locked():
            notes = self._notes()
            epoch: int = notes["epoch"] + 1
            self._write_notes({**notes, "epoch": epoch})
            # The .tmp files are unfinished snapshots of older epochs. They are useless, because the store now refuses
            # all snapshots of older epochs.
            for unfinished in self.directory.glob("*/*.tmp"):
                unfinished.unlink(missing_ok=True)
        return epoch

    def completed(self) -> Clock | None:
        noted = self._notes()["completed"]
        return None if noted is None else Clock.from_value(noted)

    def complete(self, epoch: int, clock: Clock) -> None:
        with self._locked():
            notes = self._notes()
            check_epoch(notes["epoch"], epoch, f"the complete clock {clock}")
            self._write_notes({**notes, "completed": clock.to_value()})
            for path in self.directory.glob(f"*/*{SUFFIX}"):
                if _clock_of(path) != clock:
                    path.unlink(missing_ok=True)

    def save(self, epoch: int, processor: str, clock: Clock, state: bytes) -> None:
        folder = self.directory / processor
        temporary = folder / f"{epoch}-{uuid4().hex}.tmp"
        header = encode([epoch, processor, clock.to_value()])
        length = struct.pack(">I", len(header))
        try:
            folder.mkdir(exist_ok=True)
            with temporary.open("wb") as file:
                file.write(MAGIC + struct.pack(">I", crc32c(state, crc32c(header, crc32c(length)))))
                file.write(length + header)
                file.write(state)
                file.flush()
                os.fsync(file.fileno())
            with self._locked():
                check_epoch(self._notes()["epoch"], epoch, f"a snapshot of {processor}")
                temporary.rename(folder / f"{self._next_number(folder):020}{SUFFIX}")
                _sync_directory(folder)
        except OSError as error:
            raise SnapshotError(f"{processor}: the snapshot at {clock} cannot be saved: {error}") from error
        finally:
            temporary.unlink(missing_ok=True)

    def clocks(self, processor: str) -> list[Clock]:
        return [it.clock for it in self._files(processor) if isinstance(it, SnapshotFile)]

    def load(self, processor: str, clock: Clock) -> bytes:
        errors, state = [], None
        for found in self._files(processor):
            if isinstance(found, SnapshotError):
                errors.append(str(found))
            elif found.clock == clock:
                state = found.state  # If several files have this clock, the last file is the valid one.
        if state is not None:
            return state
        raise SnapshotError(f"{processor} has no intact snapshot at {clock}. {'. '.join(errors)}".rstrip())

    def list(self) -> list[SnapshotListing]:
        listed = []
        for folder in sorted(path for path in self.directory.iterdir() if path.is_dir()):
            for found in self._files(folder.name):
                if isinstance(found, SnapshotFile):
                    listed.append(SnapshotListing(found.processor, found.clock, found.epoch, len(found.state)))
                else:
                    listed.append(SnapshotListing(folder.name, Clock(), 0, 0, str(found)))
        return listed

    # -- files

    def _files(self, processor: str) -> Iterator[SnapshotFile | SnapshotError]:
        """Yield every snapshot of a processor in the order in which the snapshots were saved.

        For a snapshot that cannot be read, yield an error instead.
        """
        for path in sorted((self.directory / processor).glob("*" + SUFFIX)):
            try:
                yield _read(path)
            except FileNotFoundError:  # The negotiator deleted the file after `glob` had listed it.
                continue
            except SnapshotError as error:
                yield error

    def _next_number(self, folder: Path) -> int:
        return max((int(path.stem) for path in folder.glob("*" + SUFFIX)), default=0) + 1

    def _notes(self) -> dict[str, Any]:
        """Return the contents of topology.json."""
        path = self.directory / "topology.json"
        try:
            notes: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {"epoch": 0, "completed": None}
        except (OSError, ValueError) as error:
            what = f"{path} cannot be read: {error}"
            raise SnapshotError(f"{what}. Restore it from a copy, or use an empty store") from error
        return notes

    def _write_notes(self, notes: dict[str, Any]) -> None:
        path, temporary = self.directory / "topology.json", self.directory / "topology.json.tmp"
        try:
            with temporary.open("w", encoding="utf-8") as file:
                json.dump(notes, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(path)
            _sync_directory(self.directory)
        except OSError as error:
            raise SnapshotError(f"{path} cannot be written: {error}") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the store's lock during the `with` block. Meanwhile, no other process or thread can check the epoch."""
        try:
            file = (self.directory / "lock").open("a")
        except OSError as error:
            raise SnapshotError(f"the snapshot store {self.directory} cannot be locked: {error.strerror}") from error
        with file:
            deadline = time.monotonic() + LOCK_TIMEOUT
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        what = f"another process has locked the snapshot store {self.directory} for {LOCK_TIMEOUT:g} s"
                        raise SnapshotError(f"{what}. End the process that holds the lock") from None
                    time.sleep(0.001)
            yield


def _read(path: Path) -> SnapshotFile:
    """Return the contents of a snapshot file.

    Raises SnapshotError if the file is damaged or cannot be read, and FileNotFoundError if the file does not exist.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SnapshotError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) < PREFIX.size:
        raise SnapshotError(f"{path} is damaged: it has only {len(data)} bytes")
    magic, crc, length = PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise SnapshotError(f"{path} is not a snapshot of this version of Hailstorm")
    if crc32c(data[PREFIX.size - 4 :]) != crc:
        raise SnapshotError(f"{path} is damaged: its checksum does not match")
    try:
        epoch, processor, clock = decode(data[PREFIX.size : PREFIX.size + length])
    except (CodecError, ValueError) as error:
        raise SnapshotError(f"{path} has no valid header: {error}") from error
    return SnapshotFile(path, epoch, processor, Clock.from_value(clock), data[PREFIX.size + length :])


def _clock_of(path: Path) -> Clock | None:
    """Return the clock in the header of a snapshot file, or None if the header is damaged.

    The clock contains one offset for each partition. The snapshot includes exactly the records below these offsets.
    """
    with path.open("rb") as file:
        try:
            _, _, length = PREFIX.unpack(file.read(PREFIX.size))
            clock = decode(file.read(length))[2]
        except (struct.error, CodecError, IndexError, TypeError):
            return None
    return Clock.from_value(clock)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
