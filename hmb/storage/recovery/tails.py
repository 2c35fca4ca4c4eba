"""Handles the bytes after the last whole batch of a segment's file. These bytes are not part of the log.

In a segment's file, two kinds of bytes may follow the last batch of the log:
- *Zeros.* If `preallocate` is set, the first append gives the file its full size, as in Kafka. Later appends do
  not change the size, so a sync need not write a new size. (The zeros occupy no space on the disk.) The log
  removes the zeros when it starts a new segment, or when the broker stops. If the broker is killed, recovery
  removes them at the next start.
- *Bytes of appends that a crash has interrupted* (checking.py). Recovery removes these bytes. If they contain
  intact batches, it first copies the bytes to a `.cut` file.
"""

from __future__ import annotations

import errno
import os
import sys
from io import FileIO
from pathlib import Path

from hmb.storage.files.durability import sync_directory

CUT = ".cut"
CHUNK = 1 << 20


def is_all_zeros(file: FileIO, position: int) -> bool:
    """Return whether the file has only zeros from `position` on. Unallocated parts count as zeros. Raises OSError."""
    while True:
        try:
            position = os.lseek(file.fileno(), position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # The file has no data after `position`.
                return True
            raise
        data = os.pread(file.fileno(), CHUNK, position)
        if data.count(0) < len(data):
            return False
        position += len(data)


def keep(path: Path, position: int, end: int | None = None) -> Path:
    """Copy the bytes from `position` up to `end` (not included) into a `.cut` file, and return its path.

    If `end` is None, copy the rest of the file. The copy gets the name `<file>.<position>.cut`. If another
    file already has this name, the copy gets the name `<file>.<position>.<number>.cut`. Long runs of zeros
    use no disk space in the copy.

    The broker never reads the copy. Raises OSError.
    """
    kept = path.with_name(f"{path.name}.{position}{CUT}")
    temporary = kept.with_name(kept.name + ".tmp")
    left = sys.maxsize if end is None else end - position
    with path.open("rb") as source, temporary.open("wb") as target:
        source.seek(position)
        while data := source.read(min(CHUNK, left)):
            left -= len(data)
            if data.count(0) < len(data):
                target.write(data)
            else:
                target.seek(len(data), os.SEEK_CUR)
        target.truncate()
        target.flush()
        os.fsync(target.fileno())
    number = 1
    while kept.exists():  # An earlier repair has made a copy with this name.
        kept = path.with_name(f"{path.name}.{position}.{number}{CUT}")
        number += 1
    temporary.rename(kept)
    sync_directory(kept.parent)
    return kept
