"""The drawings of the chapter on the log: a segment with its indexes, and the look-up of one offset."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from drawing import Drawing, Tone
from small_logs import append, checked_search, small_log

from hmb.storage.config import LogConfig
from hmb.storage.dump.inspection import IndexReader, ScanStep, scan

FIRST, WANTED = 8021, 8055  # the base offset of the segment, and the offset to look up
BATCHES, RECORDS = 12, 4
WIDTH, LEFT, CELL = 496, 8, 40


class Facts(NamedTuple):
    """The content of the three files of a segment, and the result of a look-up."""

    times: list[tuple[int, int]]  # timestamp and offset of each entry of the time index
    entries: list[tuple[int, int]]  # offset and position of each entry of the offset index
    batches: list[ScanStep]
    found: int | None  # the number of the entry with which the look-up begins
    scanned: list[ScanStep]


def facts() -> Facts:
    """Write a segment and look up an offset in it. Return the segment's content and the search result."""
    config = LogConfig(index_interval_bytes=250)
    with small_log(config, first_offset=FIRST) as log:
        for number in range(BATCHES):
            append(log, *[(None, f"day {number}")] * RECORDS, timestamp=1_000 + 60 * number)
        segment = log.segments[0]
        path = segment.offset_index.path
        looked_up, position = checked_search(segment, WANTED)
        scanned = list(scan(segment.path, position, offset=WANTED))
        all_batches = list(scan(segment.path, 0))
        made = Facts(entries_of(segment.time_index.path), entries_of(path), all_batches, looked_up.number, scanned)
        log.close()
    return made


def entries_of(path: Path) -> list[tuple[int, int]]:
    with IndexReader(path) as index:
        return [index[number] for number in range(len(index))]


def segment() -> Drawing:
    """Draw the three files of a segment, and the look-up of one offset."""
    made = facts()
    read = " and ".join(str(step.position) for step in made.scanned)
    drawing = Drawing(
        WIDTH,
        312,
        f"The segment {FIRST} with {len(made.batches)} batches. Its offset index has {len(made.entries)} entries. The "
        f"look-up of offset {WANTED} finds an entry, and then reads the batches at the positions {read}.",
    )
    for y, name, columns in (
        (46, ".timeindex", ("timestamp,", "relative offset")),
        (136, ".index", ("relative offset,", "position")),
    ):
        drawing.text(LEFT, y, name, anchor="start", strong=True)
        for row, column in enumerate(columns, 1):
            drawing.text(LEFT, y + 18 * row, column, anchor="start", size=13)
    drawing.text(LEFT, 300, ".log", anchor="start", strong=True)
    drawing.text(LEFT + 44, 300, "base offset of a batch, its position", anchor="start", size=13)
    drawing.text(WIDTH - 8, 20, f"wanted: offset {WANTED}", anchor="end", tone="violet", strong=True)
    places = {batch.position: LEFT + CELL * number for number, batch in enumerate(made.batches)}
    for number, (offset, position) in enumerate(made.entries):
        x = places[position] + CELL / 2 - 39
        is_found = number == made.found
        box = drawing.box(x, 124, 76, 46, str(offset - FIRST), str(position), tone="violet" if is_found else "amber")
        drawing.arrow(box.bottom, (places[position] + CELL / 2 - 1, 217), tone="violet" if is_found else "plain")
        for timestamp, last in made.times:
            if last == offset:
                above = drawing.box(x, 32, 76, 46, str(timestamp), str(last - FIRST), tone="amber")
                drawing.arrow(above.bottom, (above.bottom.x, 123))
    in_scan = {step.position: step for step in made.scanned}
    for batch in made.batches:
        tone: Tone = "amber"
        if batch.position in in_scan:
            tone = "green" if in_scan[batch.position].is_found else "violet"
        box = drawing.box(places[batch.position], 218, CELL - 2, 36, str(batch.base_offset), tone=tone, size=13)
        drawing.text(box.bottom.x, 272, str(batch.position), size=13)
    return drawing
