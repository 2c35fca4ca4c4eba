"""The drawing for the documentation page on event time."""

from __future__ import annotations

import runpy
from pathlib import Path

from drawing import Drawing

PROGRAM = runpy.run_path(str(Path(__file__).parents[1] / "programs" / "windows.py"))
# Each event is a pair: the minute in which it happens, and the minute in which it arrives.
EVENTS: tuple[tuple[int, int], ...] = PROGRAM["EVENTS"]
WINDOW: int = PROGRAM["WINDOW"]
TOLERANCE: int = PROGRAM["TOLERANCE"]
END = 30  # minutes on both axes


def watermark() -> Drawing:
    """Draw a chart of events with the watermark and the windows.

    Each event is a small square. The horizontal axis shows the minute in which an event arrives. The vertical axis
    shows the minute in which it happens.
    """
    drawing = Drawing(
        600,
        370,
        f"Events at the minutes {', '.join(str(minute) for minute, _ in EVENTS)}, in the order of their arrival. The "
        f"watermark rises in steps, {TOLERANCE} minutes below the newest event. The event of minute 7 arrives at "
        f"minute 20, when the watermark is above {WINDOW}, so it is late.",
    )
    left, bottom, wide, high = 90, 320, 480, 300

    def at(arrives: float, happens: float) -> tuple[float, float]:
        return left + wide * arrives / END, bottom - high * happens / END

    drawing.line(at(0, END), at(0, 0), at(END, 0))
    for minute in range(0, END, WINDOW):
        drawing.line(at(0, minute), at(END, minute), tone="gray", dashed=True)
        drawing.text(left - 8, at(0, minute)[1] + 5, str(minute), anchor="end", size=13)
        drawing.text(at(minute, 0)[0], bottom + 18, str(minute), size=13)
        name = f"window {minute} to {minute + WINDOW}"
        drawing.text(left + 8, at(0, minute + WINDOW)[1] + 17, name, anchor="start", size=12)
    drawing.text(left + wide / 2, bottom + 38, "minute of arrival", size=13)
    drawing.text(4, 14, "event time", anchor="start", size=13)
    steps = [at(0, 0)]
    level = 0
    for happens, arrives in EVENTS:
        is_late = happens - happens % WINDOW + WINDOW <= level
        x, y = at(arrives, happens)
        drawing.box(x - 6, y - 6, 12, 12, tone="red" if is_late else "green")
        if is_late:
            drawing.text(x + 12, y + 5, "late", anchor="start", tone="red", size=13)
        steps.append(at(arrives, level))
        level = max(level, happens - TOLERANCE)
        steps.append(at(arrives, level))
    steps.append(at(END, level))
    drawing.line(*steps, tone="violet")
    drawing.text(at(END, level)[0], at(END, level)[1] - 8, "watermark", anchor="end", tone="violet", size=13)
    return drawing
