"""The drawing for the documentation page that compares brokers."""

from __future__ import annotations

from drawing import Drawing, Tone


def two_families() -> Drawing:
    """Draw two kinds of brokers.

    The left broker stores a state for each message. The right broker stores one offset for each group.
    """
    drawing = Drawing(
        640,
        230,
        "Left, a queue broker: message A is acknowledged, message B is delivered to Ann, message C is waiting. "
        "Right, a log broker: messages A, B and C at offsets 0, 1 and 2, and two numbers: the "
        "offset of the group kitchen is 1, and that of the group billing is 3.",
    )
    drawing.text(150, 20, "queue broker", strong=True)
    states: tuple[tuple[str, str, Tone], ...] = (
        ("A", "acknowledged", "gray"),
        ("B", "delivered to Ann", "green"),
        ("C", "waiting", "amber"),
    )
    for row, (message, state, tone) in enumerate(states):
        y = 44 + 46 * row
        drawing.box(20, y, 44, 36, message, tone=tone, dashed=tone == "gray")
        drawing.box(70, y, 180, 36, state, tone="plain")
    drawing.text(150, 206, "a state for each message", size=13)
    drawing.line((305, 12), (305, 220), tone="gray", dashed=True)
    drawing.text(480, 20, "log broker", strong=True)
    cells = drawing.cells(400, 44, ("A", "B", "C"), "amber", width=54)
    for offset, cell in enumerate(cells):
        drawing.text(cell.top.x, 96, str(offset), size=13)
    for row, (group, offset) in enumerate((("kitchen", 1), ("billing", 3))):
        drawing.box(380, 112 + 36 * row, 100, 30, group, tone="green")
        drawing.box(484, 112 + 36 * row, 90, 30, f"offset {offset}", tone="plain")
    drawing.text(480, 206, "one offset for each group", size=13)
    return drawing
