"""The drawing of the chapter on retention shows one log twice: limited by age, and limited by size."""

from __future__ import annotations

from drawing import Drawing, Tone
from small_logs import append, roll, small_log

from hmb.storage.cleanup.retention import count_expired
from hmb.storage.config import LogConfig
from hmb.storage.segment import Segment
from hmb.units import DAY_MS

DAYS = 8  # the age of the log
RECORDS = (3, 5, 2, 4, 2)  # records in each segment
LIMITS = (
    ("retention.ms = 4 days", LogConfig(retention_ms=4 * DAY_MS)),
    ("retention.bytes = 200", LogConfig(retention_ms=-1, retention_bytes=200)),
)
WIDTH, LEFT, HIGH = 496, 8, 42
DAY_WIDTH = (WIDTH - 2 * LEFT) / DAYS


def limits() -> Drawing:
    """Draw one log twice: with a limit of time, and with a limit of size. Segments that retention removes are gray."""
    now = DAYS * DAY_MS
    with small_log(LogConfig(), clock=lambda: now) as log:
        ends = []
        day = 0.0
        for number, records in enumerate(RECORDS):
            if number:
                roll(log)
            for _ in range(records):
                day += DAYS / sum(RECORDS)
                append(log, (None, "rain"), timestamp=round(day * DAY_MS) - 1)
            ends.append(day)
        segments = list(log.segments)
        counts = [count_expired(segments, config, now=now, log_start_offset=0) for _, config in LIMITS]
        words = "; ".join(f"{name} removes {count} segments" for (name, _), count in zip(LIMITS, counts, strict=True))
        drawing = Drawing(
            WIDTH,
            292,
            f"A log of {len(segments)} segments with records of {DAYS} days, drawn twice. {words}. The removed "
            "segments are the oldest ones.",
        )
        for row, ((name, _), count) in enumerate(zip(LIMITS, counts, strict=True)):
            draw_row(drawing, 20 + 128 * row, name, segments, ends, count)
        log.close()
    bottom = 266
    drawing.arrow((LEFT, bottom), (WIDTH - LEFT, bottom))
    for age in range(DAYS, 0, -2):
        drawing.text(LEFT + DAY_WIDTH * (DAYS - age), bottom + 20, f"{age} days ago", anchor="start", size=13)
    drawing.text(WIDTH - LEFT, bottom + 20, "now", anchor="end", size=13)
    return drawing


def draw_row(drawing: Drawing, y: float, name: str, segments: list[Segment], ends: list[float], count: int) -> None:
    """Draw each segment of the log as a box.

    The length of a box shows how many days the records of the segment cover. A box for two days is twice as long
    as a box for one day.

    The first `count` boxes are gray, because retention removes these segments.
    """
    drawing.text(LEFT, y, name, anchor="start", strong=True)
    begin = 0.0
    for number, (segment, end) in enumerate(zip(segments, ends, strict=True)):
        is_removed = number < count
        tone: Tone = "gray" if is_removed else "violet" if number == len(segments) - 1 else "amber"
        box = drawing.box(
            LEFT + DAY_WIDTH * begin, y + 12, DAY_WIDTH * (end - begin) - 3, HIGH, str(segment.base_offset), tone=tone,
            dashed=is_removed,
        )  # fmt: skip
        drawing.text(box.bottom.x, y + 74, f"{segment.size} B", size=13)
        begin = end
    start = LEFT + DAY_WIDTH * (ends[count - 1] if count else 0) - 1.5
    drawing.line((start, y + 6), (start, y + HIGH + 20), tone="red")
    drawing.text(start + 5, y + 94, f"log start offset {segments[count].base_offset}", anchor="start", size=13)
