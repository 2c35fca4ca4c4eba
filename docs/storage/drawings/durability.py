"""The drawing of the chapter on durability: a run of HMB's group commit with five producers."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, NamedTuple

from drawing import Drawing

from hmb.storage.group_commit import GroupCommit, Unsynced

# Each letter names a producer that appends one batch. Producer a appends before the first sync. The producers b, c and
# d append during the first sync, and producer e appends during the second sync.
ARRIVALS = ("a", "bcd", "e")
PRODUCERS = "".join(ARRIVALS)
PATIENCE = 10.0  # seconds that the drawing waits for one producer
WIDTH, LEFT, LANE, SYNC = 496, 80, 40, 130


class Run(NamedTuple):
    """The result of one run of the example: the list of its syncs.

    For each sync, the list contains a pair: the recovery point before the sync, and the recovery point after the
    sync.
    """

    syncs: list[tuple[int, int]]


def run() -> Run:
    """Run the group commit with five producers. Return the recovery points before and after each sync."""
    disk = Disk()
    disk.arrive(0)
    while disk.threads:
        disk.threads.pop(0).join(PATIENCE)
    if disk.commit.recovery_point != len(PRODUCERS):
        raise AssertionError("a batch of the drawing was never synced")
    return Run(disk.syncs)


class Disk:
    """A simulated disk with one segment, to which five producers append one batch each.

    One producer appends before the first sync of the segment. Three producers append during the first sync. The
    fifth producer appends during the second sync.
    """

    files: tuple[()] = ()

    def __init__(self) -> None:
        self.commit = GroupCommit(Path("weather-0"), 0, 0, lambda segment, end_offset: None)
        self.end_offset = 0
        self.syncs: list[tuple[int, int]] = []
        self.threads: list[threading.Thread] = []

    def arrive(self, number: int) -> None:
        """Start a thread for each producer in `ARRIVALS[number]`. The thread appends a batch and waits for a sync."""
        if number == len(ARRIVALS):
            return
        first = self.end_offset
        self.end_offset += len(ARRIVALS[number])
        for offset in range(first, self.end_offset):
            self.threads.append(threading.Thread(target=self.commit.sync, args=(offset + 1, self.begin, lambda: 0)))
            self.threads[-1].start()

    def begin(self, recovery_point: int) -> Unsynced:
        self.syncs.append((recovery_point, self.end_offset))
        segments: Any = [self]
        return Unsynced(self.end_offset, segments, Path("weather-0"), 0)

    def flush(self) -> None:
        self.arrive(len(self.syncs))


def group_commit() -> Drawing:
    """Draw on a time axis how five producers append batches, and how each sync of the disk covers several batches."""
    syncs = run().syncs
    height = 62 + LANE * len(PRODUCERS) + 62
    words = ". ".join(
        f"Sync {number} covers the batches of {' and '.join(PRODUCERS[first:end])}"
        for number, (first, end) in enumerate(syncs, 1)
    )
    drawing = Drawing(WIDTH, height, f"Five producers append batches and wait for the disk. {words}.")
    for number, (first, end) in enumerate(syncs):
        covered = ", ".join(PRODUCERS[first:end])
        x = LEFT + SYNC * number + 20
        drawing.box(x, 30, SYNC - 8, 34, f"sync {covered}", tone="amber")
        for lane in range(first, end):
            done = x + SYNC - 8
            y = 62 + LANE * lane + 36
            appended = begin_of(lane, number)
            drawing.line((appended, y), (done - 2, y), tone="blue", dashed=True)
            drawing.box(appended - 12, y - 13, 26, 26, PRODUCERS[lane], tone="blue")
            drawing.arrow((done, 64), (done, y - 7), tone="green")
            drawing.box(done - 7, y - 7, 14, 14, tone="green")
    drawing.text(8, 52, "disk", anchor="start", strong=True)
    drawing.text(8, 62 + 40 * 2 + 42, "producers", anchor="start", strong=True)
    drawing.text(8, height - 36, "letter: the batch is appended", anchor="start", size=13)
    drawing.text(8, height - 14, "green: on disk, the response is sent", anchor="start", size=13)
    drawing.arrow((372, height - 30), (WIDTH - 10, height - 30))
    drawing.text(430, height - 12, "time", size=13)
    return drawing


def begin_of(lane: int, sync: int) -> float:
    """Return the x coordinate of the moment at which a producer appends its batch.

    `lane` is the row of the producer in the drawing. `sync` is the number of the sync that writes the batch to disk.
    """
    if not sync:
        return LEFT + 6
    in_group = lane - sum(map(len, ARRIVALS[:sync]))
    return LEFT + SYNC * (sync - 1) + 44 + 30 * in_group
