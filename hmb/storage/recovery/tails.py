"""Bytes after the last whole batch of a segment's file, which are not part of the log.

- *Zeros*, if `preallocate` is set. The file then has its full size from the first append on, as in Kafka, so that a
  sync does not write a new length each time. The file system does not reserve the space. When the log rolls or the
  broker stops, the segment is cut to its true size. After a kill the zeros are still there, and recovery cuts them.
- *Bytes of appends that a crash has interrupted* (checking.py). If they contain whole batches, recovery keeps them in
  a `.cut` file.
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
    """Return whether the file has only zeros from `position` on. Sparse parts are skipped. Raises OSError."""
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
    """Copy the bytes from `position` to `end` (None: the file's end) to `<name of the file>.<position>.cut`.

    No start reads the copy. Zeros become sparse parts of it. Return the copy's path. Raises OSError.
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
    while kept.exists():  # An earlier crash has left a copy with this name.
        kept = path.with_name(f"{path.name}.{position}.{number}{CUT}")
        number += 1
    temporary.rename(kept)
    sync_directory(kept.parent)
    return kept
