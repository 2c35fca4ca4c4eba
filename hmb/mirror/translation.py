"""Translates offsets of a source partition to offsets of its copy.

A copy does not always have the offsets of its source. Retention may have deleted the first records of the source. The
mirror does not copy the transaction markers of the source. If the mirror itself uses transactions, each transaction
adds a marker to the copy.

A mirror remembers the offsets of its copy as *runs*. A run is a series of records whose source offsets and target
offsets both grow by one from record to record. For example, the source has a marker at offset 3, and the copy has none:
    source offsets   0  1  2  marker  4  5          runs: (source 0, target 0, 3 records)
    target offsets   0  1  2          3  4                (source 4, target 3, 2 records)

For example, a consumer group has committed offset 5 at the source. If the record with offset 5 has offset 4 at the
target, the group continues there at offset 4.

A partition *keeps* its offsets if each record has the same offset in the copy as at the source. For
example, the partition and its copy have records at all offsets from 7 to 99. These records form one run:
source 7, target 7, 93 records.

If the mirror uses transactions, each transaction adds a marker to the copy. The source has no offset for this
marker, so a new run begins after the marker. A partition can have thousands of runs.

A mirror keeps at most MAX_RUNS (64) runs of a partition. At 65 runs, it forgets the runs 2, 4, 6, ..., 32,
counted from the oldest run. Each forgotten run leaves a *gap* between two runs.

In a gap, the mirror has forgotten the offsets of the copied records, so it counts records (see `groups`). For
example, a gap begins at source offset 500, and a group has committed offset 560. The offsets 500 to 559 belong
to 40 records and 20 transaction markers. In the copy, the group continues after the first 40 records of the gap.

If the mirror cannot count the records of a gap, the group continues at the start of the gap. The group rereads
some records, but misses none.

A mirror saves a partition's runs of copied records as text in an offset commit. Brokers limit the size of
this text, so MAX_RUNS limits the number of runs.

The command `hmb restore` uses a `Translation` for the offsets of a backup (cli/backup/renumbering.py). The
command does not save this object, so the object's size needs no limit (`keeps_all`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple, Self

# The mirror saves the runs (see `CopiedRun`) of a partition as text in an offset commit. The text of 64 runs has at
# most 3,840 bytes; the limit is 4,096 bytes (offset.metadata.max.bytes).
MAX_RUNS = 64


class CopiedRun(NamedTuple):
    """A series of `length` copied records with consecutive offsets, both at the source and in the copy.

    `source` is the offset of the first record at the source. `target` is the offset of this record in the copy. For
    example, `CopiedRun(4, 3, 2)` means that the records 4 and 5 of the source have the offsets 3 and 4 in the copy.
    """

    source: int
    target: int
    length: int


class TranslationGap(NamedTuple):
    """A part of a partition in which the mirror no longer knows the exact offsets of the copied records.

    At the source, the gap begins at the offset `source`. In the copy, the gap contains the offsets from `target` to
    `target_end` - 1.
    """

    source: int
    target: int
    target_end: int


class Translation:
    """Translates offsets of one source partition to offsets of its copy.

    It stores each series of copied records with consecutive offsets as a `CopiedRun`, in offset order.
    """

    def __init__(self, runs: Iterable[CopiedRun], *, keeps_all: bool = False) -> None:
        """Create a translation from `runs`, which describe the records that are already copied.

        The argument `runs` contains at least one run, in ascending order of offsets. If no record is copied yet,
        `runs` contains one run of length 0.

        The method `add` adds more runs. If more than MAX_RUNS runs exist after that, `add` removes some older runs,
        unless `keeps_all` is true.
        """
        self._runs, self._keeps_all = list(runs), keeps_all

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a text that `__str__` has made, and return the translation. Raises ValueError for another format."""
        numbers = [[int(number) for number in run.split(":")] for run in text.split(",")]
        return cls([CopiedRun(source, target, length) for source, target, length in numbers])

    def __str__(self) -> str:
        return ",".join(f"{run.source}:{run.target}:{run.length}" for run in self._runs)

    @property
    def keeps_offsets(self) -> bool:
        """Whether each record of the copy has the offset that it has at the source."""
        first = self._runs[0]
        return len(self._runs) == 1 and first.source == first.target

    @property
    def target_end(self) -> int:
        """The offset of the last copied record at the target, plus 1."""
        last = self._runs[-1]
        return last.target + last.length

    def add(self, source: int, target: int, length: int) -> None:
        """Add `length` copied records. `source` and `target` are the offsets of the first of these records."""
        last = self._runs[-1]
        if not last.length and len(self._runs) == 1:
            self._runs = [CopiedRun(source, target, length)]
        elif (source, target) == (last.source + last.length, last.target + last.length):
            self._runs[-1] = CopiedRun(last.source, last.target, last.length + length)
        else:
            self._runs.append(CopiedRun(source, target, length))
        if len(self._runs) > MAX_RUNS and not self._keeps_all:
            del self._runs[1 : MAX_RUNS // 2 : 2]

    def gap_at(self, source: int) -> TranslationGap | None:
        """Return the gap that contains the source offset `source`, or None if this offset is not in a gap.

        In a gap, the mirror does not know the exact offsets of the records in the copy.
        """
        at = bisect_right(self._runs, source, key=lambda run: run.source) - 1
        if not 0 <= at < len(self._runs) - 1 or source <= self._runs[at].source + self._runs[at].length:
            return None
        run = self._runs[at]
        return TranslationGap(run.source + run.length, run.target + run.length, self._runs[at + 1].target)

    def translate(self, source: int) -> int:
        """Return the offset in the copy that corresponds to the source offset `source`.

        If a consumer group has committed the offset `source`, it can continue in the copy at the returned offset. In
        some parts of the partition (gaps), the mirror no longer knows the exact offsets. For an offset in a gap, return
        the offset at which the gap begins in the copy. If `source` is greater than the offset of every copied record,
        return the offset after the last copied record.
        """
        at = bisect_right(self._runs, source, key=lambda run: run.source) - 1
        if at < 0:  # The source had deleted the record before the mirror started.
            return self._runs[0].target
        run = self._runs[at]
        return run.target + min(source - run.source, run.length)
