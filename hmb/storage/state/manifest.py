"""The manifest: the sizes and checksums of the broker's files. A mismatch shows that a file has changed.

In Kafka, batches have a CRC, but indexes and checkpoint files have no checksum. If one digit in a checkpoint file
changes, consumers may miss records. A lost segment looks like one that retention has deleted. HMB therefore stores
the sizes and checksums of its files in `hmb-manifest`, which Kafka ignores. The broker logs every mismatch. It can
check a segment or rebuild an index, but it refuses to start if a file such as `topics.json` does not match.

Each line of the file `hmb-manifest` is one entry: a CRC-32C of the rest of the line, the entry's kind, and its
fields. In this example, the third line is a `topic` entry, which contains a partition and a topic id:
    6856822b manifest 000000131072
    b11acda5 file topics.json 142 90c1f2aa - -
    de2b2083 topic events-0 qDZ9oMfQTpO0ib6hXlK2Yw
    1e9975cb segment events-0 0 8021 1048544 1764000000123456789 2040 3060 68 520762322
    d727605f forget events-0 0

After its kind, an entry contains the name of a file or a partition. Only the kinds `manifest`, `opened` and
`closed` have no name. The following list describes the kinds and the other fields:
- `manifest`: the size of the file `hmb-manifest` in bytes. If the file is shorter, its end is lost. The file
  ends with empty lines as space for new entries. If this space is too small, the broker writes a new file.
- `file`: the size and the CRC-32C of a state file's new content, and the size and the CRC-32C of its old
  content (`- -` if no old file existed). The broker syncs this entry before it replaces the file. After a
  crash, the file may have either content. After the replacement, the broker writes the new values twice
  (`142 90c1f2aa 142 90c1f2aa`), so only the new content is valid.
- `topic`: the topic id of a partition.
- `segment`: four pairs of numbers. (1) The base offsets of this segment and the next segment. (2) The size of
  the log file and the time of its last write (ns). (3) The sizes of the offset index and the time index. (4)
  The size and the CRC-32C of the transaction index. If the size of the log file is -1, the broker is replacing
  all segments between the two base offsets.
- `forget`: the base offset of a segment that the broker will delete. Without a base offset, the broker will
  delete the whole partition.
- `opened`: the broker has started.
- `closed`: the broker has stopped properly.

Before the broker replaces or deletes a file, it writes an entry. For example, it writes a `forget` entry before
it deletes a segment. If the broker deleted the segment first, it could crash before it wrote the entry. The next
start would then report a lost segment. If two entries contradict each other, the later entry is valid.

The broker appends records to the last segment of a partition, but it does not write a new entry into the manifest for
each append. While the broker runs, and after a crash, this segment may therefore be larger than the size in its entry.
When the broker stops properly, it writes an entry with the right size.

After HMB has stopped, Kafka can use the same directory, but Kafka does not update the manifest. HMB notices this when
it starts again: HMB and Kafka write different contents into the file `.kafka_cleanshutdown` when they stop. HMB ignores
a manifest that is out of date or damaged. If the manifest is damaged, HMB also logs the damage.

Source: the MANIFEST file of LevelDB.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from hmb.records.crc import crc32c
from hmb.storage.files.disk_reserve import DiskReserve
from hmb.storage.files.durability import replace_files

LOGGER = logging.getLogger(__name__)
NAME = "hmb-manifest"
TOPICS_FILE = "topics.json"  # a file of HMB that Kafka does not have
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
CLEAN_CONTENT = '{"version":0,"brokerEpoch":-1}\n'  # Kafka writes this text without the newline.
LEAST_ROOM = 1 << 16  # bytes; a new manifest has at least this space for later entries
BEING_REPLACED = UNKNOWN = -1


class DamagedStateFile(Exception):
    """The error for a damaged state file. The message contains the path of the file and the damage."""


class FileEntry(NamedTuple):
    """The size (bytes) and the CRC-32C of the content of a state file."""

    size: int
    checksum: int

    @classmethod
    def of(cls, content: str | bytes) -> FileEntry:
        data = content.encode() if isinstance(content, str) else content
        return cls(len(data), crc32c(data))


class SegmentEntry(NamedTuple):
    """The values that the manifest stores for one segment, such as the sizes (bytes) of its files.

    A `segment` line in the file `hmb-manifest` contains these values in the same order.
    """

    base_offset: int
    next_offset: int
    size: int
    modified: int
    index_size: int
    time_index_size: int
    aborted_size: int
    aborted_checksum: int

    @property
    def log(self) -> tuple[int, int]:
        return self.size, self.modified

    @property
    def indexes(self) -> tuple[int, int]:
        return self.index_size, self.time_index_size

    @property
    def aborted(self) -> tuple[int, int]:
        return self.aborted_size, self.aborted_checksum


class Partition:
    """The manifest's entries of one partition: its topic id and its segments."""

    def __init__(self) -> None:
        self.topic_id = ""
        self.segments: dict[int, SegmentEntry] = {}  # entries by base offset


class Manifest:
    """The manifest of a data directory. Thread-safe."""

    def __init__(self, directory: Path, reserve: DiskReserve | None = None, *, syncs: bool = True) -> None:
        """Read the manifest. Raises OSError.

        If the disk is full, later writes use `reserve`. If `syncs` is False, a power cut may undo later writes.
        """
        self._syncs = syncs
        self._reserve = reserve or DiskReserve(directory)
        self.path = directory / NAME
        self._directory = directory
        # This lock guards the manifest's entries and its file. A thread that holds this lock takes no other lock.
        self._lock = threading.Lock()
        # After a crash, a state file can have its old or its new content. `_files` describes all correct contents.
        self._files: dict[str, tuple[FileEntry | None, ...]] = {}
        self._partitions: dict[str, Partition] = {}
        self._size = 0  # size of the manifest in bytes
        self._end = UNKNOWN  # position after the last entry; UNKNOWN if the next write must write a new file
        self._is_closed = False
        if not self._read() or not self._is_last_writer():
            self._files.clear()
            self._partitions.clear()
            self._is_closed = False

    # -- read

    def _read(self) -> bool:
        """Read the manifest's file. Return whether the broker can use its entries."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            if (self._directory / TOPICS_FILE).exists():
                LOGGER.warning("%s is missing: the broker accepts all files as they are", self.path)
            return False
        header, *lines = [*filter(None, content.split(b"\n"))] or [b""]
        intact = [line for line in lines if _is_intact(line)]
        torn = len(lines) - len(intact)
        if header != _header(len(content)) or (torn and any(map(_is_intact, lines[-torn:]))):
            LOGGER.error("%s is damaged; the broker ignores the manifest, and accepts all files as they are", self.path)
            return False
        if torn:  # A power cut interrupted the write of these lines, before the broker changed the files.
            LOGGER.warning("%s: the last lines are incomplete, so the broker ignores these lines", self.path)
        for line in intact:
            if not self._take(line.decode().split(" ")[1:]):
                LOGGER.error("%s was written by a newer version of HMB: %s", self.path, line)
                return False
        return True

    def _take(self, entry: list[str]) -> bool:
        """Apply one line of the manifest, divided into fields. Return False if the fields are not a valid entry."""
        match entry:
            case ["opened" | "closed" as state]:
                self._is_closed = state == "closed"
            case ["file", name, *contents] if len(contents) == 4:
                self._files[name] = (_file_entry(*contents[:2]), _file_entry(*contents[2:]))
            case ["topic", name, topic_id]:
                self._partitions.setdefault(name, Partition()).topic_id = topic_id
            case ["segment", name, *numbers] if len(numbers) == 8:
                found = SegmentEntry(*map(int, numbers))
                self._partitions.setdefault(name, Partition()).segments[found.base_offset] = found
            case ["forget", name]:
                self._partitions.pop(name, None)
            case ["forget", name, base_offset]:
                self._partitions.get(name, Partition()).segments.pop(int(base_offset), None)
            case _:
                return False
        return True

    def _is_last_writer(self) -> bool:
        """Return whether HMB was the last broker that wrote to the directory."""
        try:
            content = (self._directory / CLEAN_SHUTDOWN).read_bytes()
        except FileNotFoundError:
            if self._is_closed:
                LOGGER.warning("%s is missing, though this broker stopped properly. Another broker has used the "
                               "directory, or the file was removed. This broker accepts all files as they are",
                               self._directory / CLEAN_SHUTDOWN)  # fmt: skip
            return not self._is_closed
        if content != CLEAN_CONTENT.encode():
            LOGGER.info("another broker has used the directory %s: this broker accepts all files as they are",
                        self._directory)  # fmt: skip
            return False
        return True

    # -- state files

    def check(self, path: Path) -> None:
        """Raise DamagedStateFile if a state file is missing, or does not match the manifest. Raises OSError."""
        known = self._files.get(self._name(path))
        if known is None:
            return
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            if None not in known:
                raise DamagedStateFile(f"{path} is missing, though this broker wrote it") from None
            return
        if FileEntry.of(content) not in known:
            raise DamagedStateFile(f"{path} is not what this broker wrote: it was changed, or it is damaged")

    def replace_file(self, path: Path, content: str | bytes) -> None:
        """Replace one state file in one step. Raises OSError."""
        self.replace_files({path: content})

    def replace_files(
        self, contents: Mapping[Path, str | bytes], *, sync: bool = True, also: Iterable[str] = ()
    ) -> None:
        """Replace the content of several state files, and update the manifest. Raises OSError.

        The method first writes lines to the manifest: the caller's lines (`also`), and for each file the old and the
        new checksum. It then replaces each file in one step. Without `sync`, a power cut can restore the old contents.
        """
        new = {self._name(path): FileEntry.of(content) for path, content in contents.items()}
        old = {name: self._files.get(name, (None,))[0] for name in new}
        try:
            self._append([*also, *(_file_line(name, entry, old[name]) for name, entry in new.items())])
            self._reserve.write(partial(replace_files, contents, sync=sync and self._syncs))
        except BaseException:
            for name, entry in new.items():
                self._files[name] = (old[name], entry)  # The file has the old or the new content.
            raise
        # The files have their new contents, so add entries without the old checksums. No sync is necessary: if a power
        # cut removes these entries, the manifest accepts both contents.
        try:
            self._append([_file_line(name, entry, entry) for name, entry in new.items()], sync=False)
        except OSError as error:
            LOGGER.warning("%s: %s", self.path, error)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._directory).as_posix()

    # -- partitions

    def topic_id(self, partition: str) -> str | None:
        """Return the topic id of a partition as text, or None if the manifest does not contain this id."""
        known = self._partitions.get(partition)
        return known.topic_id or None if known else None

    def segments(self, partition: str) -> Mapping[int, SegmentEntry] | None:
        """Return the manifest's entries of a partition's segments, by base offset.

        Return None if the manifest has no entries of this partition.
        """
        known = self._partitions.get(partition)
        return dict(known.segments) if known else None

    def add_partitions(self, topic_ids: Mapping[str, str], contents: Mapping[Path, str]) -> None:
        """Add new partitions to the manifest, and write their state files. Raises OSError.

        `topic_ids` maps the name of each partition to its topic id. `contents` maps the path of each state file to its
        text. The state files are not synced to the disk, so a power cut can remove them.
        """
        lines = []
        for name, topic_id in topic_ids.items():
            empty = SegmentEntry(0, 0, 0, 0, 0, 0, 0, 0)
            lines += [f"forget {name}", f"topic {name} {topic_id}", _segment_line(name, empty)]
        self.replace_files(contents, sync=False, also=lines)

    def forget_partitions(self, names: Iterable[str]) -> None:
        """Remove deleted partitions from the manifest. Raises OSError."""
        self._append([f"forget {name}" for name in names])

    def forget_segments(self, partition: str, base_offsets: Iterable[int]) -> None:
        """Remove segments from the manifest, because the broker is about to delete them. Raises OSError."""
        self._append([f"forget {partition} {base_offset}" for base_offset in base_offsets])

    def replace_segments(self, partition: str, base_offsets: Iterable[int], entry: SegmentEntry) -> None:
        """Replace the segments at `base_offsets` in the manifest by one new segment. Raises OSError."""
        lines = [f"forget {partition} {base_offset}" for base_offset in base_offsets]
        self._append([*lines, _segment_line(partition, entry)])

    def record(self, partitions: Mapping[str, Iterable[SegmentEntry]], *, sync: bool = True) -> None:
        """Add segments to the manifest, or change their entries. Raises OSError.

        If `sync` is False, the new entries are not synced to the disk. A power cut can then remove them.
        """
        lines = []
        for name, entries in partitions.items():
            known = self._partitions.get(name, Partition()).segments
            lines += [_segment_line(name, entry) for entry in entries if known.get(entry.base_offset) != entry]
        self._append(lines, sync=sync)

    # -- write

    def open(self, topic_ids: Mapping[str, str], segments: Mapping[str, Iterable[SegmentEntry]]) -> None:
        """Write a new file `hmb-manifest` after the broker has loaded its logs. Raises OSError.

        The keys of both arguments are partition names. The new file contains the topic id and the segments of each
        partition in `segments`. It also contains the old file's entries for state files.
        """
        with self._lock:
            self._partitions = {name: Partition() for name in segments}
            for name, entries in segments.items():
                self._partitions[name].topic_id = topic_ids.get(name, "")
                self._partitions[name].segments = {entry.base_offset: entry for entry in entries}
            self._is_closed = False
            self._rewrite()

    def close(self) -> None:
        """Write into the manifest that the broker has stopped properly. Raises OSError."""
        self._append(["closed"])

    def _append(self, lines: list[str], *, sync: bool = True) -> None:
        """Append lines to the manifest, and sync them if `sync` is True.

        If the method raises OSError, it has added no line.
        """
        if lines:
            self._reserve.write(partial(self._append_once, lines, sync))

    def _append_once(self, lines: list[str], sync: bool) -> None:
        with self._lock:
            for line in lines:
                self._take(line.split(" "))
            # A write can fail after half a line. `_end` then stays UNKNOWN, so the next write replaces the whole file.
            position, self._end = self._end, UNKNOWN
            data = "".join(map(_line, lines)).encode()
            end = position + len(data)
            if position == UNKNOWN or end >= self._size or not self._is_as_written():
                self._rewrite()
                return
            with self.path.open("r+b") as file:
                file.seek(position)
                file.write(data)
                file.flush()
                if sync and self._syncs:
                    os.fdatasync(file.fileno())
            self._end = end

    def _is_as_written(self) -> bool:
        """Return whether the manifest's file still exists and has the expected size.

        If another process has removed or shortened the file, the result is False.
        """
        return self.path.is_file() and self.path.stat().st_size == self._size

    def _rewrite(self) -> None:
        lines = ["closed" if self._is_closed else "opened"]
        lines += [_file_line(name, *contents) for name, contents in self._files.items()]
        for name, partition in self._partitions.items():
            if partition.topic_id:
                lines.append(f"topic {name} {partition.topic_id}")
            lines += [_segment_line(name, entry) for entry in partition.segments.values()]
        entries = "".join(map(_line, lines)).encode()
        end = len(_header(0)) + 1 + len(entries)
        size = end + max(LEAST_ROOM, len(entries))
        content = (_header(size) + b"\n" + entries).ljust(size, b"\n")
        replace_files({self.path: content}, sync=self._syncs)
        self._size, self._end = size, end


def _is_intact(line: bytes) -> bool:
    checksum, _, entry = line.partition(b" ")
    return checksum == b"%08x" % crc32c(entry)


def _header(size: int) -> bytes:
    return _line(f"manifest {size:012d}").rstrip().encode()


def _line(entry: str) -> str:
    return f"{crc32c(entry.encode()):08x} {entry}\n"


def _file_line(name: str, *contents: FileEntry | None) -> str:
    texts = ("- -" if entry is None else f"{entry.size} {entry.checksum:08x}" for entry in contents)
    return " ".join(["file", name, *texts])


def _segment_line(partition: str, entry: SegmentEntry) -> str:
    return " ".join(["segment", partition, *map(str, entry)])


def _file_entry(size: str, checksum: str) -> FileEntry | None:
    return None if size == "-" else FileEntry(int(size), int(checksum, 16))
