"""Collects the findings of a dump: contradictions between the files of a log, such as a wrong index entry.

The dump first prints all files, and then all findings, sorted by kind. Kafka's tool uses the same order. One
kind of finding is no error: in a compacted log, gaps between offsets are normal. Every other kind means that an
index is damaged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from hmb.storage.dump.entries import Entry

MAX_FINDINGS = 1000  # the limit for findings of one kind in one file; a compacted log may have millions of gaps
# One cause can lead to thousands of problems. For example, if the end of a log file is missing, all index entries for
# this part are wrong. So `verify` shows only the first FEW problems of each kind in each file.
FEW = 5


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of finding, for example a wrong index entry.

    For each file, the dump prints a heading (template `heading`), and then one line for each finding (template
    `form`). Kafka's tool prints the same lines.
    """

    name: str
    heading: str
    form: str
    is_damage: bool = True


INDEX_MISMATCH = Kind("index_mismatch", "Mismatches in :{}", "  Index offset: {}, log offset: {}")
TIMESTAMP_MISMATCH = Kind(
    "timestamp_mismatch", "Found timestamp mismatch in :{}", "  Index timestamp: {}, log timestamp: {}"
)
OUT_OF_ORDER = Kind(
    "out_of_order_timestamp",
    "Found out of order timestamp in :{}",
    "  Index timestamp: {}, Previously indexed timestamp: {}",
)
NOT_FOUND = Kind(
    "indexed_offset_not_found",
    "The following indexed offsets are not found in :{}",
    "Indexed offset: {}, found log offset: {}",
)
GAP = Kind("non_consecutive_offsets", "Non-consecutive offsets in {}", "  {} is followed by {}", is_damage=False)
IN_ORDER = (INDEX_MISMATCH, TIMESTAMP_MISMATCH, OUT_OF_ORDER, NOT_FOUND, GAP)


@dataclass(frozen=True, slots=True)
class FindingEntry(Entry):
    """All findings of one kind in one file. Each finding is a pair of numbers that do not fit together.

    For example, an index entry contains offset 59, but its batch in the log ends at offset 60. The pair is then
    (59, 60).
    """

    kind: ClassVar[str] = "finding"
    finding: Kind
    file: Path
    pairs: list[tuple[int, int]]
    more: int

    @property
    def is_damage(self) -> bool:
        return self.finding.is_damage

    def line(self) -> str:
        # Kafka's tool prints index mismatches in reverse order, so HMB does the same.
        pairs = reversed(self.pairs) if self.finding is INDEX_MISMATCH else self.pairs
        lines = [self.finding.heading.format(self.file.absolute()), *[self.finding.form.format(*it) for it in pairs]]
        if self.more:
            lines.append(f"  and {self.more} more")
        return "\n".join(lines)

    def fields(self) -> dict[str, object]:
        return {"finding": self.finding.name, "file": str(self.file), "pairs": self.pairs, "more": self.more}


class Findings:
    """Collects the findings of a dump. A finding is a pair of numbers that do not fit together.

    For example, the offset in an index entry differs from the offset in the log. For each file and each kind of
    finding, this class stores at most `most` findings. It only counts all further findings, because a file can have
    a very large number of them.
    """

    def __init__(self, most: int = MAX_FINDINGS) -> None:
        self._most = most
        self._pairs: dict[tuple[Kind, Path], list[tuple[int, int]]] = {}
        self._more: Counter[tuple[Kind, Path]] = Counter()
        self.damages = 0  # the number of findings that show damage

    def add(self, kind: Kind, file: Path, one: int, other: int) -> None:
        self.damages += kind.is_damage
        pairs = self._pairs.setdefault((kind, file), [])
        if len(pairs) < self._most:
            pairs.append((one, other))
        else:
            self._more[kind, file] += 1

    def entries(self) -> Iterator[FindingEntry]:
        for wanted in IN_ORDER:
            for (kind, file), pairs in self._pairs.items():
                if kind is wanted:
                    yield FindingEntry(kind, file, pairs, self._more[kind, file])
