"""One correct answer to lab 4: a commit log in one file."""

import struct
from pathlib import Path

LENGTH = struct.Struct(">i")


class Log:
    """A log in one directory. The file `log` of this directory contains a frame for each record."""

    def __init__(self, directory):
        path = Path(directory) / "log"
        path.touch()
        self.file = path.open("r+b")
        self.positions = []  # the position in the file at which the frame of each record begins
        self.end = self._recover()

    def _recover(self):
        """Find all complete frames, cut the file after the last complete frame, and return the new size of the file."""
        size = self.file.seek(0, 2)
        position = 0
        while True:
            self.file.seek(position)
            prefix = self.file.read(LENGTH.size)
            if len(prefix) < LENGTH.size:
                break
            (length,) = LENGTH.unpack(prefix)
            if length < 0 or position + LENGTH.size + length > size:
                break
            self.positions.append(position)
            position += LENGTH.size + length
        self.file.truncate(position)
        return position

    @property
    def end_offset(self):
        return len(self.positions)

    def append(self, record):
        self.file.seek(self.end)
        self.file.write(LENGTH.pack(len(record)) + record)
        self.file.flush()
        self.positions.append(self.end)
        self.end += LENGTH.size + len(record)
        return len(self.positions) - 1

    def read(self, offset):
        if not 0 <= offset < len(self.positions):
            raise IndexError(f"offset {offset} is not in 0 .. {len(self.positions) - 1}")
        self.file.seek(self.positions[offset])
        (length,) = LENGTH.unpack(self.file.read(LENGTH.size))
        return self.file.read(length)

    def close(self):
        self.file.close()
