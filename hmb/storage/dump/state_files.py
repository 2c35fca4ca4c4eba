"""Dumps a data directory's small text files: checkpoints, `partition.metadata`, `meta.properties`.

The small text files of a data directory are called state files (state/checkpoints.py). Kafka's DumpLogSegments
ignores them. HMB shows each line of these files. If a line has a wrong format, HMB shows an error with the
line's position.

A checkpoint contains a version, the number of its entries, and one line for each entry. The next table shows
the lines of each file, separated by `|`:
    partition.metadata       version: 0 | topic_id: <id>
    meta.properties          name=value | # comment
    leader-epoch-checkpoint  0 | 1 | 0 0                            (entry: epoch, its first offset)
    every other checkpoint   0 | 2 | events 0 1234 | events 1 977   (entry: topic, partition, offset)

Kafka creates some checkpoints as empty files. So an empty checkpoint is not damaged; it only has no entries. If a line
has a wrong format, the dump continues with the next line. But if the file contains bytes that are not text, the dump of
this file ends there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import ClassVar, NamedTuple

from hmb.storage.dump.entries import DamageEntry, DumpOptions, Entry, NoteEntry
from hmb.storage.dump.findings import Findings
from hmb.storage.state.checkpoints import LEADER_EPOCHS, TOPIC_ID, VERSION_LINE, decode_topic_id
from hmb.storage.state.identity import META_PROPERTIES
from hmb.storage.state.manifest import DamagedStateFile
from hmb.storage.state.offset_checkpoints import CLEANER_OFFSETS, RECOVERY_POINTS, START_OFFSETS

MAX_LINE = 4096  # greatest size of a line, in bytes; a topic's name has at most 249 characters


@dataclass(frozen=True, slots=True)
class PropertyEntry(Entry):
    """A line of a properties file: a name and its value."""

    kind: ClassVar[str] = "property"
    name: str
    value: str

    def line(self) -> str:
        return f"{self.name}: {self.value}"


@dataclass(frozen=True, slots=True)
class OffsetEntry(Entry):
    """A line of a checkpoint: the offset of one partition."""

    kind: ClassVar[str] = "checkpoint"
    topic: str
    partition: int
    offset: int

    def line(self) -> str:
        return f"topic: {self.topic} partition: {self.partition} offset: {self.offset}"


@dataclass(frozen=True, slots=True)
class EpochEntry(Entry):
    """A line of the file `leader-epoch-checkpoint`: a leader epoch and its first offset."""

    kind: ClassVar[str] = "leader_epoch"
    epoch: int
    start_offset: int

    def line(self) -> str:
        return f"epoch: {self.epoch} startOffset: {self.start_offset}"


class StateLine(NamedTuple):
    """One entry in the dump of a state file. Most entries describe one line of the file.

    `position` and `data` are the position and the bytes of this line. If an entry does not describe a line, `data`
    is empty. For example, an entry can report that a line is missing.
    """

    position: int
    data: bytes
    entry: Entry


class _Malformed(Exception):
    """The error for a line that does not have the format of its file."""


Lines = Iterator[tuple[int, bytes, str]]  # position, bytes, text without the newline
Parser = Callable[[Lines, Path], Iterator[StateLine]]


def read_state(file: BufferedReader, path: Path, _options: DumpOptions, _findings: Findings) -> Iterator[Entry]:
    """Yield the entries of a state file. The name of the file shows its format."""
    for line in state_lines(file, path):
        yield line.entry


def state_lines(file: BufferedReader, path: Path) -> Iterator[StateLine]:
    """Yield each line of a state file, with the entry that the dump shows for this line."""
    position = 0

    def lines() -> Lines:
        nonlocal position
        while data := file.readline(MAX_LINE):
            text = data.decode()
            if len(data) == MAX_LINE or not text.rstrip("\r\n").isprintable():
                raise _Malformed(f"this is no line of a {path.name}")
            yield position, data, text.rstrip("\r\n")
            position += len(data)

    try:
        yield from STATE_FILES[path.name](lines(), path)
    except (_Malformed, UnicodeDecodeError) as error:
        yield StateLine(position, b"", DamageEntry(path, position, f"{error}"))


def _checkpoint(parse: Callable[[str, Entry | None], Entry]) -> Parser:
    """Return a parser for a checkpoint file. The function `parse` converts one line of the file to an entry.

    `parse` also gets the entry of the previous intact line, so that it can compare the two lines. For the first
    line after the header, this argument is None.
    """

    def read(lines: Lines, path: Path) -> Iterator[StateLine]:
        count, previous = -1, None
        number = end = 0
        for number, (position, data, text) in enumerate(lines, 1):
            end = position + len(data)
            try:
                if number == 1:
                    entry: Entry = PropertyEntry("version", _expected(text, VERSION_LINE))
                elif number == 2:
                    count = _natural(text)
                    entry = PropertyEntry("entries", text)
                else:
                    entry = previous = parse(text, previous)
            except (_Malformed, ValueError) as error:
                entry = DamageEntry(path, position, f"{text!r}: {error}")
            yield StateLine(position, data, entry)
        if number == 1:
            raise _Malformed("the number of entries is missing")
        if number and count not in (-1, number - 2):
            yield StateLine(end, b"", DamageEntry(path, end, f"expected {count} entries, found {number - 2}"))

    return read


def _offset(text: str, _previous: Entry | None) -> Entry:
    topic, partition, offset = _columns(text, "topic partition offset")
    return OffsetEntry(topic, _natural(partition), _natural(offset))


def _epoch(text: str, previous: Entry | None) -> Entry:
    epoch, start_offset = map(_natural, _columns(text, "epoch offset"))
    if isinstance(previous, EpochEntry) and (epoch <= previous.epoch or start_offset < previous.start_offset):
        raise _Malformed(
            f"the epoch must be greater than {previous.epoch}, and the offset must be at least {previous.start_offset}"
        )
    return EpochEntry(epoch, start_offset)


def _partition_metadata(lines: Lines, path: Path) -> Iterator[StateLine]:
    found = set()
    for position, data, text in lines:
        name, _, value = map(str.strip, text.partition(":"))
        found.add(name)
        entry: Entry = PropertyEntry(name, value)
        try:
            if name == "version":
                _expected(value, "0")
            elif name == "topic_id":
                decode_topic_id(value)
            else:
                raise _Malformed("neither version nor topic_id")
        except (_Malformed, DamagedStateFile) as error:
            entry = DamageEntry(path, position, f"{text!r}: {error}")
        yield StateLine(position, data, entry)
    yield from _missing({"version", "topic_id"} - found, path)


def _properties(lines: Lines, path: Path) -> Iterator[StateLine]:
    found: dict[str, str] = {}
    for position, data, text in lines:
        name, equals, value = map(str.strip, text.partition("="))
        entry: Entry = PropertyEntry(name, value)
        if name.startswith(("#", "!")) or not text.strip():
            entry = NoteEntry(text)
        elif not equals or not name:
            entry = DamageEntry(path, position, f"{text!r} does not have the form 'name=value'")
        found[name] = value
        yield StateLine(position, data, entry)
    is_old = found.get("version") == "0"  # Brokers that use ZooKeeper, not KRaft, write version 0.
    needed = {"version", "broker.id"} if is_old else {"version", "node.id", "cluster.id"}
    yield from _missing(needed - found.keys(), path)


def _missing(names: set[str], path: Path) -> Iterator[StateLine]:
    if names:
        yield StateLine(0, b"", DamageEntry(path, 0, f"the file has no {' and no '.join(sorted(names))}"))


def _columns(text: str, names: str) -> list[str]:
    columns = text.split()
    if len(columns) != len(names.split()):
        raise _Malformed(f"not '{names}'")
    return columns


def _natural(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise _Malformed(f"{text!r} is no offset, epoch or count")
    return int(text)


def _expected(text: str, version: str) -> str:
    if text != version:
        raise _Malformed(f"the version should be {version}")
    return text


_OFFSETS = _checkpoint(_offset)

STATE_FILES: dict[str, Parser] = {
    RECOVERY_POINTS: _OFFSETS,
    START_OFFSETS: _OFFSETS,
    CLEANER_OFFSETS: _OFFSETS,
    "replication-offset-checkpoint": _OFFSETS,  # the high watermarks that Kafka stores
    LEADER_EPOCHS: _checkpoint(_epoch),
    TOPIC_ID: _partition_metadata,
    META_PROPERTIES: _properties,
}
