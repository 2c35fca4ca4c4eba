"""Read the input of `hmb produce`, from standard input or from files, and show the progress."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import click

from ..shared.errors import CliError
from .line_formats import LineRecord, Parse
from .lines import MAX_LINE, Lines
from .tally import Chunk, Tally

PROGRESS_INTERVAL = 0.2  # seconds
STDIN = "-"


@dataclass
class RecordInput:
    """The input of `hmb produce`: all files, or standard input. Any thread may call `stop` to end the reading."""

    files: tuple[str, ...]
    in_lines: bool
    delimiter: bytes
    parse: Parse | None
    skip_blank: bool
    done: int = 0  # the size in bytes of all files that have been read completely
    _lines: Lines | None = field(default=None, init=False)
    _stopped: bool = field(default=False, init=False)

    def stop(self) -> None:
        self._stopped = True
        if self._lines is not None:
            self._lines.stop()

    @property
    def is_terminal(self) -> bool:
        """Whether the input comes from a terminal, at which a person types the records."""
        return STDIN in (self.files or (STDIN,)) and sys.stdin.isatty()

    @property
    def bytes_read(self) -> int:
        return self.done + (self._lines.bytes_read if self._lines else 0)

    def size(self) -> int | None:
        """Return the size of the whole input in bytes. Return None if the input is a pipe or a terminal."""
        try:
            infos = [os.fstat(0) if name == STDIN else Path(name).stat() for name in self.files or (STDIN,)]
        except OSError:
            return None
        return sum(info.st_size for info in infos) if all(stat.S_ISREG(info.st_mode) for info in infos) else None

    def chunks(self) -> Iterator[Chunk]:
        """Yield the records in chunks. Raises CliError if the input cannot be read or parsed."""
        for name in self.files or (STDIN,):
            with ExitStack() as stack:
                is_stdin = name == STDIN
                stream = sys.stdin.buffer if is_stdin else stack.enter_context(Path(name).open("rb"))
                where = "standard input" if is_stdin else name
                try:
                    if self.in_lines or is_stdin:
                        yield from self._in_lines(stream, where)
                    else:
                        yield self._whole(stream, where)
                except OSError as error:  # The OSError of a read does not contain the name of the file.
                    raise CliError(f"{where}: {error.strerror}") from error
            if self._stopped:
                return

    def _in_lines(self, stream: BinaryIO, name: str) -> Iterator[Chunk]:
        self._lines = lines = Lines(stream, name, self.delimiter)
        if self._stopped:  # `stop` was called before `lines` existed.
            lines.stop()
        number = 1
        try:
            for block in lines:
                numbers = range(number, number + len(block))
                if self.parse is None:
                    yield Chunk(name, numbers, block)
                else:
                    yield from self._parsed(self.parse, name, numbers, block)
                number = numbers.stop
        finally:
            self.done, self._lines = self.bytes_read, None
            lines.close()

    def _parsed(self, parse: Parse, name: str, numbers: range, block: list[bytes]) -> Iterator[Chunk]:
        """Parse lines, and yield all their records as one chunk.

        If a line cannot be parsed, yield a chunk with the records of the earlier lines, and then raise the error.
        """
        places: list[int] = []
        records: list[LineRecord] = []
        problem: CliError | None = None
        for number, line in zip(numbers, block, strict=True):
            if self.skip_blank and not line.strip():
                continue
            try:
                records.append(parse(line))
            except ValueError as error:
                problem = CliError(f"{name}, line {number}: {error}")
                break
            places.append(number)
        yield Chunk(name, places, [record.value for record in records], records)
        if problem is not None:
            raise problem

    def _whole(self, stream: BinaryIO, name: str) -> Chunk:
        data = stream.read(MAX_LINE + 1)
        if len(data) > MAX_LINE:
            raise CliError(f"{name}: longer than {MAX_LINE:,} bytes; -l sends it line by line")
        self.done += len(data)
        if self.parse is None:
            return Chunk(name, None, [data])
        record = self.parse(data)
        return Chunk(name, None, [record.value], [record])


def with_progress(source: RecordInput, tally: Tally, quiet: bool) -> Iterator[Chunk]:
    """Yield the chunks of an input.

    If a person types the input, print how to end it. For a pipe or a file, show the progress.
    """
    if quiet or not sys.stderr.isatty() or source.is_terminal:
        if source.is_terminal and not quiet:
            click.echo("type one record a line; Ctrl-D on an empty line ends", err=True)
        yield from source.chunks()
        return
    with ExitStack() as stack:
        show = _progress_bar(stack, source)
        sent, shown = 0, time.monotonic()
        for chunk in source.chunks():
            yield chunk
            sent += len(chunk)
            if time.monotonic() - shown > PROGRESS_INTERVAL:
                shown = time.monotonic()
                show(f"{sent} records sent, {tally.delivered} acknowledged")


def _progress_bar(stack: ExitStack, source: RecordInput) -> Callable[[str], None]:
    """Show a progress bar until `stack` is closed. Return the function that updates the bar."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    progress = stack.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
    task = progress.add_task("sending ...", total=source.size())
    return lambda text: progress.update(task, completed=source.bytes_read, description=text)
