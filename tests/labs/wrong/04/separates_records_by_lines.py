"""A wrong answer to lab 4: a line end separates two records, so a record cannot contain a line end."""

from pathlib import Path


class Log:
    """A log with one line for each record."""

    def __init__(self, directory):
        self.path = Path(directory) / "log"
        self.path.touch()

    @property
    def end_offset(self):
        return len(self.path.read_bytes().split(b"\n")) - 1

    def append(self, record):
        with self.path.open("ab") as file:
            file.write(record + b"\n")
        return self.end_offset - 1

    def read(self, offset):
        if not 0 <= offset < self.end_offset:
            raise IndexError(offset)
        return self.path.read_bytes().split(b"\n")[offset]

    def close(self):
        pass
