"""The drawings of the chapter on compaction.

One drawing shows a log before and after a compaction. The other drawing shows how a new segment replaces old
segments.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from drawing import Drawing, Tone
from small_logs import append, batches_of, quiet, records_of, roll, small_log

from hmb.records import Record
from hmb.storage.compaction import swap
from hmb.storage.compaction.cleaner import Throttle, clean, cleanable
from hmb.storage.config import LogConfig
from hmb.storage.files import together
from hmb.storage.log import Log
from hmb.storage.segment import Segment
from hmb.storage.time_index import TimestampOffset

CONFIG = LogConfig(cleanup_policy="compact", min_cleanable_dirty_ratio=0.0)
# EARLIER contains segments 1 and 2 of a log, and LATER contains segments 3 to 5. A segment is a list of pairs (key,
# value). Compaction never changes the last segment. The first compaction runs before segments 4 and 5 exist, so it
# changes segments 1 and 2. The drawing shows the second compaction, of segments 1 to 4.
EARLIER = ([("a", "1"), ("f", "1"), ("c", "1")], [("a", "2"), ("d", "1"), ("b", "2")])
LATER = ([("c", "2"), ("a", "3"), ("e", "1")], [("d", None), ("b", "3"), ("e", "2")], [("a", "4")])
MEMORY = 1_000_000
WIDTH, LEFT, CELL = 536, 8, 40


def compact(log: Log, first_dirty: int) -> int:
    """Compact the log once. Return the new first dirty offset: all records at lower offsets are compacted."""
    work = cleanable(log, first_dirty, log.clock())
    if work is None:
        raise AssertionError("the log of the drawing cannot be compacted")
    throttle = Throttle(float("inf"), threading.Event())
    return clean(log, work, max_memory=MEMORY, now=log.clock(), throttle=throttle)


def write(log: Log, segments: tuple[list[tuple[str, str | None]], ...]) -> None:
    """Append a batch for each record. Each list of records gets its own segment."""
    for records in segments:
        if log.log_end_offset:
            roll(log)
        for record in records:
            append(log, record)


def round_of_cleaner() -> Drawing:
    """Draw a log before and after a compaction: its clean part, its dirty part and its active segment."""
    with small_log(CONFIG) as log:
        # Compaction never changes the last segment, here LATER[0]. So the first compaction changes only EARLIER.
        write(log, (*EARLIER, LATER[0]))
        first_dirty = compact(log, 0)
        write(log, LATER[1:])
        before, bases_before = records_of(log), [segment.base_offset for segment in log.segments]
        new_first_dirty = compact(log, first_dirty)
        after, bases_after = records_of(log), [segment.base_offset for segment in log.segments]
        end = log.log_end_offset
        log.close()
    drawing = Drawing(
        WIDTH,
        330,
        f"A compacted log before and after a round of the cleaner. Before, the dirty part begins at offset "
        f"{first_dirty}. The records {in_words(before)} become {in_words(after)}. Then the dirty part begins at "
        f"offset {new_first_dirty}.",
    )
    for y, title, records, bases, dirty in (
        (28.0, "before", before, bases_before, first_dirty),
        (192.0, "after", after, bases_after, new_first_dirty),
    ):
        drawing.text(LEFT, y - 8, title, anchor="start", strong=True)
        draw_records(drawing, y + 28, records, bases[-1], dirty)
        draw_parts(drawing, y + 14, dirty, bases[-1], end)
        for base in bases:
            is_last = base == bases[-1]
            x = WIDTH - LEFT if is_last else LEFT + CELL * base
            drawing.text(x, y + 116, f"segment {base}", anchor="end" if is_last else "start", size=12, strong=True)
    return drawing


def draw_records(drawing: Drawing, y: float, records: list[Record], active: int, dirty: int) -> None:
    """Draw each record above its offset, as a box with its key and its value."""
    for record in records:
        tone: Tone = "violet" if record.offset >= active else "amber" if record.offset >= dirty else "green"
        x = LEFT + CELL * record.offset
        value = "null" if record.value is None else record.value.decode()
        drawing.box(x, y, CELL - 4, 48, (record.key or b"").decode(), value, tone=tone, size=12)
        drawing.text(x + CELL / 2 - 2, y + 66, str(record.offset), size=13)


def draw_parts(drawing: Drawing, y: float, dirty: int, active: int, end: int) -> None:
    """Write the names of the log's parts above its records: the clean part, the dirty part, and the active segment."""
    for name, first, last in (("clean", 0, dirty), ("dirty", dirty, active), ("active", active, end)):
        if first < last:
            left, right = LEFT + CELL * first, LEFT + CELL * last - 4
            drawing.line((left, y + 8), (left, y + 2), (right, y + 2), (right, y + 8))
            drawing.text((left + right) / 2, y - 4, name, size=13)


def in_words(records: list[Record]) -> str:
    return ", ".join(
        f"{record.offset} {(record.key or b'').decode()}={'null' if record.value is None else record.value.decode()}"
        for record in records
    )


# -- The next functions draw a swap: a compacted segment replaces the old segments.


def steps_of_swap(log: Log) -> Iterator[str]:
    """Replace the closed segments of the log by a compacted segment, as the cleaner does.

    Yield the name of each step.
    """
    *old, _ = log.segments
    new = swap.new_segment(log.directory, 0, CONFIG)
    kept = {record.key: (segment, record) for segment in old for record in records_in(segment)}
    for segment in old:
        for position, batch in batches_of(segment):
            if any(kept[record.key] == (segment, record) for record in batch.records()):
                copy_batch(new, segment, position)
    yield "1: write"
    swap.make_ready(new)
    yield "2: to .swap"
    for segment in old:
        together.mark_deleted(segment.files)
    yield "3: to .deleted"
    swap.put_in_place(new)
    yield "4: final names"


def records_in(segment: Segment) -> list[Record]:
    return [record for _, batch in batches_of(segment) for record in batch.records()]


def copy_batch(new: Segment, segment: Segment, position: int) -> None:
    """Copy one batch from `position` of a segment to the end of the new segment."""
    batch = next(each for at, each in batches_of(segment) if at == position)
    new.append([batch.view], batch.last_offset, TimestampOffset(batch.max_timestamp, batch.last_offset))


def start_after_crash(directory: Path) -> list[Record]:
    """Return the records that a broker would find in `directory` if it crashed now and started again.

    The log is still open, so the function opens a copy of its files.
    """
    with TemporaryDirectory() as temporary:
        copy = Path(temporary) / "copy"
        shutil.copytree(directory, copy)
        with quiet():
            log = Log(copy, CONFIG)
            found = records_of(log)
            log.close()
    return found


def steps_on_disk() -> Drawing:
    """Draw the names of the log files after each of four steps.

    In these steps, a compacted segment replaces old segments. Suppose that the broker crashes after a step, and
    starts again. Below each step, the drawing shows how many records the broker then finds.
    """
    columns: list[tuple[str, list[str], int]] = []
    with small_log(CONFIG) as log:
        write(log, EARLIER)
        roll(log)
        append(log, ("a", "3"))
        for title in steps_of_swap(log):
            columns.append((title, names_of(log), len(start_after_crash(log.directory))))
    most = max(len(names) for _, names, _ in columns)
    words = ". ".join(f"{title}: {', '.join(names)}" for title, names, _ in columns)
    drawing = Drawing(WIDTH, 40 + 30 * most + 50, f"The log files after each step of a swap. {words}.")
    wide = (WIDTH - 2 * LEFT) / len(columns)
    for number, (title, names, count) in enumerate(columns):
        x = LEFT + wide * number
        drawing.text(x, 20, title, anchor="start", size=12.0, strong=True)
        for row, name in enumerate(names):
            drawing.box(x, 32 + 30 * row, wide - 8, 26, name, tone=tone_of(name), size=13)
        y = 32 + 30 * most + 24
        drawing.text(x, y, "a crash here, then", anchor="start", size=12.0)
        drawing.text(x, y + 18, f"a start: {count} records", anchor="start", size=12.0)
    return drawing


def names_of(log: Log) -> list[str]:
    """Return the names of the log files, without the leading zeros of their base offsets."""
    names = sorted(path.name for path in log.directory.iterdir() if ".log" in path.name)
    return [f"{int(name.partition('.')[0])}.{name.partition('.')[2]}" for name in names]


def tone_of(name: str) -> Tone:
    if name.endswith((swap.CLEANED, swap.SWAP)):
        return "green"
    return "gray" if name.endswith(together.DELETED) else "amber"
