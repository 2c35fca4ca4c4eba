"""The steps of a look-up in the offset index: the broker finds the batch that contains an offset.

The module appends records to a log in a temporary directory. To look up an offset in this log, it uses the functions
`search` and `scan` of the command `hmb index-inspect`.
"""

from __future__ import annotations

from typing import NamedTuple

from drawing import Drawing, Tone
from small_logs import append, checked_search, small_log
from step_by_step import Step

from hmb.storage.config import LogConfig
from hmb.storage.dump.inspection import IndexReader, ScanStep, Search, SearchStep, scan
from hmb.storage.log import Log
from hmb.storage.segment import Segment

WANTED = 66  # the offset that the example looks up
BATCHES, RECORDS = 27, 4  # batches in the log, and records in each batch
WIDTH, HEIGHT = 480, 300
LEFT = 10
CELL = 52  # pixels: the width of an index entry or a batch


class Found(NamedTuple):
    """A log, and the result of each step of a look-up: the segment, the entry of its index, and the batch."""

    bases: list[int]  # base offsets of all segments
    segment: int  # base offset of the segment that contains the wanted offset
    entries: list[tuple[int, int]]  # offset and position of each entry of the index
    search: Search
    batches: list[ScanStep]  # all batches of the segment
    scanned: list[ScanStep]


def steps() -> list[Step]:
    """Return the steps of the look-up of one offset in a log of three segments."""
    found = look_up()
    return [*choose_segment(found), *search_index(found), *scan_log(found)]


def look_up() -> Found:
    """Write a log, and look up the wanted offset in it."""
    with small_log(LogConfig(segment_bytes=1_200, index_interval_bytes=150)) as log:
        write(log)
        segment: Segment = log.log_segments.from_offset(WANTED)[0]
        path = segment.offset_index.path
        searched, position = checked_search(segment, WANTED)
        with IndexReader(path) as index:
            entries = [index[number] for number in range(len(index))]
        return Found(
            [each.base_offset for each in log.segments],
            segment.base_offset,
            entries,
            searched,
            list(scan(segment.path, 0)),
            list(scan(segment.path, position, offset=WANTED)),
        )


def write(log: Log) -> None:
    """Append batches of equal size to the log, and close it."""
    for _ in range(BATCHES):
        append(log, *[(None, "order 17")] * RECORDS)
    log.close()


def draw(found: Found, alternative: str) -> Drawing:
    """Return a drawing with only titles and the wanted offset. The text `alternative` describes the drawing."""
    drawing = Drawing(WIDTH, HEIGHT, f"Look-up of offset {WANTED}. {alternative}")
    drawing.text(LEFT, 22, "segments, by base offset", anchor="start", size=13)
    name = f"segment {found.segment}"
    drawing.text(LEFT, 112, f"offset index of {name}: offset, position", anchor="start", size=13)
    drawing.text(LEFT, 222, f"log of {name}: batches, positions", anchor="start", size=13)
    drawing.text(WIDTH - 8, 22, f"wanted: offset {WANTED}", anchor="end", tone="violet", strong=True)
    return drawing


def draw_segments(drawing: Drawing, found: Found, *, is_chosen: bool) -> None:
    """Draw the segments of the log. The chosen segment is violet."""
    for number, base in enumerate(found.bases):
        tone: Tone = "violet" if is_chosen and base == found.segment else "amber"
        drawing.box(LEFT + 156 * number, 34, 150, 36, f"segment {base}", tone=tone)


def draw_index(drawing: Drawing, found: Found, tones: list[Tone]) -> None:
    """Draw the entries of the offset index. The list `tones` contains their colors."""
    for number, ((offset, position), tone) in enumerate(zip(found.entries, tones, strict=True)):
        drawing.box(LEFT + 86 * number, 122, 80, 46, str(offset), str(position), tone=tone)


def tones_of_result(found: Found) -> list[Tone]:
    """Return the tones (colors) of the index entries after the search: violet for the found entry, gray for others."""
    return ["violet" if number == found.search.number else "gray" for number in range(len(found.entries))]


def draw_log(drawing: Drawing, found: Found, tones: list[Tone]) -> None:
    """Draw the batches of the segment. The list `tones` contains their colors."""
    for number, (batch, tone) in enumerate(zip(found.batches, tones, strict=True)):
        x = LEFT + CELL * number
        drawing.box(x, 232, CELL - 3, 36, f"{batch.base_offset}-{batch.last_offset}", tone=tone, size=14)
        drawing.text(x + CELL / 2 - 1, 286, str(batch.position), size=13)


def choose_segment(found: Found) -> list[Step]:
    """Return a list with one step, in which the broker chooses the segment with the wanted offset."""
    drawing = draw(found, f"The segments have the base offsets {found.bases}; segment {found.segment} is chosen.")
    draw_segments(drawing, found, is_chosen=True)
    draw_index(drawing, found, ["plain"] * len(found.entries))
    draw_log(drawing, found, ["plain"] * len(found.batches))
    caption = (
        f"The broker looks for offset {WANTED}. It chooses segment {found.segment}, because {found.segment} is the "
        f"greatest base offset that is not above {WANTED}."
    )
    return [Step(caption, drawing)]


def search_index(found: Found) -> list[Step]:
    """Return one step for each comparison of the binary search, and one for its result."""
    steps = [compare(found, step) for step in found.search.steps]
    number, entry = found.search.number, found.search.entry
    if number is None or entry is None:
        raise AssertionError("the search finds no entry in the index of the example")
    drawing = draw(found, f"Entry {number} of the index is found. It leads to position {entry[1]} of the log file.")
    draw_segments(drawing, found, is_chosen=True)
    draw_index(drawing, found, tones_of_result(found))
    start = next(each for each, batch in enumerate(found.batches) if batch.position == entry[1])
    draw_log(drawing, found, ["plain"] * len(found.batches))
    drawing.arrow((LEFT + 86 * number + 40, 168), (LEFT + CELL * start + CELL / 2 - 1, 231), tone="violet")
    caption = (
        f"The binary search ends. The entry with offset {entry[0]} is the last entry at or below offset {WANTED}. "
        f"The scan of the log file begins at its position, byte {entry[1]}."
    )
    return [*steps, Step(caption, drawing)]


def compare(found: Found, step: SearchStep) -> Step:
    """Return the step in which the binary search compares the wanted offset with one entry."""
    relation = "at or below" if step.goes_right else "above"
    drawing = draw(found, f"The search compares it with the middle entry, whose offset {step.key} is {relation} it.")
    draw_segments(drawing, found, is_chosen=True)
    in_range = range(step.low, step.high + 1)
    draw_index(
        drawing,
        found,
        ["violet" if n == step.middle else "amber" if n in in_range else "gray" for n in range(len(found.entries))],
    )
    draw_log(drawing, found, ["plain"] * len(found.batches))
    count = len(in_range)
    candidates = "one entry" if count == 1 else f"{count} entries"
    direction = "This entry or a later one" if step.goes_right else "An earlier entry"
    caption = (
        f"The binary search of the index has {candidates} left. The entry in the middle has offset {step.key}, which "
        f"is {relation} the wanted offset {WANTED}. {direction} is the right one."
    )
    return Step(caption, drawing)


def scan_log(found: Found) -> list[Step]:
    """Return one step for each batch that the scan reads."""
    steps = []
    for read in found.scanned:
        result = "contains" if read.is_found else "ends before"
        alternative = f"The scan reads the batch at position {read.position}, which {result} the wanted offset."
        drawing = draw(found, alternative)
        draw_segments(drawing, found, is_chosen=True)
        draw_index(drawing, found, tones_of_result(found))
        done = [batch.position for batch in found.scanned if batch.position < read.position]
        current: Tone = "green" if read.is_found else "violet"
        tones: list[Tone] = [
            current if batch.position == read.position else "gray" if batch.position in done else "amber"
            for batch in found.batches
        ]
        draw_log(drawing, found, tones)
        steps.append(Step(_caption_of(found, read), drawing))
    return steps


def _caption_of(found: Found, read: ScanStep) -> str:
    reads = (
        f"The scan of the log file reads the header of the batch at byte {read.position}. The batch has offsets "
        f"{read.base_offset} to {read.last_offset}."
    )
    if not read.is_found:
        return f"{reads} Offset {WANTED} is in a later batch."
    return (
        f"{reads} Offset {WANTED} is in this batch, so the look-up ends. It read {len(found.scanned)} of "
        f"{len(found.batches)} batch headers."
    )
