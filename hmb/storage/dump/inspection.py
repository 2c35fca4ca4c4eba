"""Inspecting an index: `inspect` compares entries with the log, `search` and `scan` show the steps of a look-up.

An index repeats facts that are also in the log. `inspect` compares each entry of an index with the log. It
checks these rules:
- An entry of the offset index contains the last offset of a batch, and the position where this batch begins.
- An entry of the time index contains the last offset of a batch, and the greatest timestamp of this batch. No
  earlier batch has a greater timestamp.
- From each entry to the next, both numbers increase.

`search` and `scan` show how a broker finds the batch that contains an offset. First, `search` does a binary
search in the offset index for the last entry whose offset is not greater than the wanted offset. For example,
the index has entries for the offsets 100 and 200. For the offset 150, `search` finds the entry for 100. This
entry contains a position in the log. `scan` reads the log from this position until it finds the batch.

If a client sends a timestamp instead of an offset, the broker first finds an offset in the time index.

Source: the thesis, chapter 9.5.3, "Storage Format".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path

from hmb.protocol.errors import KafkaError
from hmb.records import NO_TIMESTAMP
from hmb.records.reading import stored_offset
from hmb.storage.dump.segment_files import BatchAt, IndexReader, walk


@dataclass(frozen=True, slots=True)
class InspectedEntry:
    """An entry of an index, and the result of its check. If the entry is correct, `problem` is None."""

    number: int
    key: int  # offset in an offset index, timestamp (ms) in a time index
    value: int  # position in an offset index, offset in a time index
    distance: int  # `value` minus the previous entry's `value`, in bytes or in offsets
    problem: str | None


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of an index: the numbers of entries and mismatches, and the distances between neighboring entries.

    The distances are in bytes in an offset index, and in offsets in a time index.
    """

    entries: int = 0
    mismatches: int = 0
    smallest: int = 0
    average: int = 0
    greatest: int = 0

    def plus(self, entry: InspectedEntry, covered: int) -> Summary:
        """Return a new summary that includes one more entry of the index.

        In an offset index, `covered` is the number of bytes from the start of the log file to the position in `entry`.
        In a time index, `covered` is the number of offsets from the start of the segment to the offset in `entry`. The
        average distance between entries is `covered` divided by the number of entries.
        """
        return replace(
            self,
            entries=self.entries + 1,
            mismatches=self.mismatches + (entry.problem is not None),
            smallest=min(self.smallest, entry.distance) if self.entries else entry.distance,
            average=covered // (self.entries + 1),
            greatest=max(self.greatest, entry.distance),
        )


def inspect(path: Path) -> Iterator[InspectedEntry]:
    """Yield every entry of an index. Compare each entry with the log file of the same segment."""
    with IndexReader(path) as index, path.with_suffix(".log").open("rb") as log:
        check = _TimeIndexCheck(log) if index.is_time_index else _OffsetIndexCheck(log)
        previous: tuple[int, int] | None = None
        for number in range(len(index)):
            key, value = index[number]
            problem = check.problem_of(key, value)
            if previous is not None and (key <= previous[0] or value <= previous[1]):
                problem = f"does not grow: {previous[0]}, {previous[1]} stands before it"
            first = index.base_offset if index.is_time_index else 0
            yield InspectedEntry(number, key, value, value - (previous[1] if previous else first), problem)
            previous = key, value


class _LogWalk:
    """Reads the batches of a log in order, to compare each entry of an index with its batch in the log."""

    def __init__(self, log: BufferedReader) -> None:
        self._batches = walk(log)
        self.current: BatchAt | None = None
        self.damage: str | None = None
        self.max_timestamp = NO_TIMESTAMP
        self.advance()

    def advance(self) -> None:
        try:
            self.current = next(self._batches, None)
        except KafkaError as error:
            self.current, self.damage = None, error.message
        if self.current is not None:
            self.max_timestamp = max(self.max_timestamp, self.current.batch.max_timestamp)


class _OffsetIndexCheck(_LogWalk):
    def problem_of(self, offset: int, position: int) -> str | None:
        while self.current is not None and self.current.position < position:
            self.advance()
        if self.current is None:
            return self.damage or f"position {position} is behind the end of the log"
        if self.current.position > position:
            return f"no batch starts at position {position}; the next one does at {self.current.position}"
        last_offset = self.current.batch.last_offset
        return None if last_offset == offset else f"the batch at position {position} ends at offset {last_offset}"


class _TimeIndexCheck(_LogWalk):
    def problem_of(self, timestamp: int, offset: int) -> str | None:
        while self.current is not None and self.current.batch.last_offset < offset:
            self.advance()
        if self.current is None:
            return self.damage or f"offset {offset} is behind the end of the log"
        batch = self.current.batch
        if batch.last_offset != offset:
            return f"no batch ends at offset {offset}; one does at {batch.last_offset}"
        if batch.max_timestamp != timestamp:
            return f"the greatest timestamp of the batch is {batch.max_timestamp}"
        if self.max_timestamp > timestamp:
            return f"a batch before it has the timestamp {self.max_timestamp}"
        return None


@dataclass(frozen=True, slots=True)
class SearchStep:
    """One step of a binary search. It compares the wanted key with the entry halfway between `low` and `high`."""

    low: int
    high: int
    middle: int
    key: int  # the key of the entry halfway between `low` and `high`
    goes_right: bool  # True: the wanted entry is at `middle` or after it. False: it is before `middle`.


@dataclass(frozen=True, slots=True)
class ScanStep:
    """A batch that a scan of the log reads. The scan ends at the batch that contains the wanted offset or timestamp."""

    position: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    is_found: bool


@dataclass(frozen=True, slots=True)
class Search:
    """The steps and the result of a binary search. If the search found no entry, `number` and `entry` are None."""

    path: Path
    entries: int
    wanted: int
    steps: list[SearchStep]
    number: int | None
    entry: tuple[int, int] | None


def bisection(
    count: int, key_of: Callable[[int], int], wanted: int, *, below: bool = False
) -> tuple[list[SearchStep], int | None]:
    """Search for the last entry whose key is at most `wanted`. Return the steps and the entry's number.

    The search is binary. The entries are sorted by their keys, and have the numbers 0 to `count` - 1. `key_of(3)`
    returns the key of entry 3. If `below` is True, the key must be less than `wanted`. If no such entry exists, the
    returned number is None.
    """
    steps: list[SearchStep] = []
    low, high = 0, count - 1
    while low <= high:
        middle = (low + high) // 2
        key = key_of(middle)
        goes_right = key < wanted if below else key <= wanted
        steps.append(SearchStep(low, high, middle, key, goes_right))
        low, high = (middle + 1, high) if goes_right else (low, middle - 1)
    return steps, high if high >= 0 else None


def search(path: Path, wanted: int, *, below: bool = False) -> Search:
    """Find the last index entry whose key is at most `wanted`. With `below=True`, the key is less than `wanted`."""
    with IndexReader(path) as index:
        steps, found = bisection(len(index), lambda number: index[number][0], wanted, below=below)
        return Search(path, len(index), wanted, steps, found, None if found is None else index[found])


def scan(log: Path, position: int, *, offset: int | None = None, timestamp: int | None = None) -> Iterator[ScanStep]:
    """Yield a `ScanStep` for each batch of a log file, from `position` to the batch that the caller wants.

    If `offset` is given, the scan ends at the first batch whose last offset is `offset` or greater. If `timestamp`
    (ms) is given, the scan ends at the first batch whose greatest timestamp is `timestamp` or greater. The scan
    yields a step for this batch, too.
    """
    with log.open("rb") as file:
        for at, batch in walk(file, position):
            if offset is not None:
                is_found = batch.last_offset >= offset
            else:
                is_found = timestamp is not None and batch.max_timestamp >= timestamp
            first = stored_offset(batch)
            yield ScanStep(at, first, batch.last_offset, batch.max_timestamp, is_found)
            if is_found:
                return
