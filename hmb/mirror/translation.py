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

A *run* is a series of records whose source offsets and target offsets both grow by one. A partition *keeps* its offsets
if it has only one run, and if the first record of this run has the same offset at the source and at the target.

If the mirror writes in transactions, the target writes a marker after each of them. Each marker takes an offset of the
copy, so it ends a run: a series of records without a gap in their offsets. A partition could therefore have thousands
of runs. As soon as it has more than MAX_RUNS, the mirror forgets every second run in the older half of the list. A
forgotten run leaves a *gap* between two other runs.

A gap contains source offsets for which the mirror no longer knows the offsets in the copy. To translate a committed
offset in a gap, the mirror counts the records of the gap, at the source and at the target (see the module `groups`). If
it cannot count the records, the translated offset is the start of the gap. The consumer group then reads some records
again, but it misses none.

The command `hmb restore` uses the class `Translation`, too: it translates the offsets of a backup. A mirror keeps only
MAX_RUNS runs of each partition, because it stores them in the text of an offset commit, which must be short. A restore
does not store the runs in a commit, so it keeps all of them (cli/backup/renumbering.py).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple, Self

MAX_RUNS = 64  # A commit stores the runs as text, and a broker accepts 4,096 bytes (offset.metadata.max.bytes).


class CopiedRun(NamedTuple):
    """A series of `length` records. `source` and `target` are the offsets of its first record in both clusters."""

    source: int
    target: int
    length: int


class TranslationGap(NamedTuple):
    """A part of a partition between two runs. A run is a series of copied records (`CopiedRun`).

    At the source, the gap begins at the offset `source`. In the copy, the gap begins at the offset `target`, and the
    next run begins at the offset `target_end`.
    """

    source: int
    target: int
    target_end: int


class Translation:
    """Translates offsets of one source partition to offsets of its copy.

    It stores the offsets of the copied records as runs (`CopiedRun`), in the order of these offsets.
    """

    def __init__(self, runs: Iterable[CopiedRun], *, keeps_all: bool = False) -> None:
        """Create a translation from `runs`, the records that are already copied.

        `runs` contains at least one run, in the order of their offsets. If no record is copied yet, the only run has
        the length 0. The method `add` adds further runs. If `keeps_all` is False, `add` removes some older runs as soon
        as more than MAX_RUNS exist.
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
        """The target offset after the last copied record."""
        last = self._runs[-1]
        return last.target + last.length

    def add(self, source: int, target: int, length: int) -> None:
        """Record that `length` records were copied. `source` and `target` are the offsets of the first record."""
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

        A gap is the part of a partition between two runs of copied records.
        """
        at = bisect_right(self._runs, source, key=lambda run: run.source) - 1
        if not 0 <= at < len(self._runs) - 1 or source <= self._runs[at].source + self._runs[at].length:
            return None
        run = self._runs[at]
        return TranslationGap(run.source + run.length, run.target + run.length, self._runs[at + 1].target)

    def translate(self, source: int) -> int:
        """Return the offset at the target from which a consumer must read to continue at the offset `source`.

        An offset after the last copied record becomes the end of the copy.
        """
        at = bisect_right(self._runs, source, key=lambda run: run.source) - 1
        if at < 0:  # The source had deleted the record before the mirror started.
            return self._runs[0].target
        run = self._runs[at]
        return run.target + min(source - run.source, run.length)
