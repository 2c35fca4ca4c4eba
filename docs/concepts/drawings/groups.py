"""The drawings for the documentation page on offsets, consumer groups and lag."""

from __future__ import annotations

from drawing import Drawing, Tone

from hmb.client.group.assignors import SubscribedMember, assign_range

COMMITTED, POSITION, END = 4, 6, 9  # three offsets of the partition in the drawing
COUNT_OF_PARTITIONS = 4


def offsets() -> Drawing:
    """Draw a partition and the lag of a consumer: the log end offset minus the committed offset."""
    drawing = Drawing(
        640,
        230,
        f"A partition with records at offsets 0 to {END - 1}. The committed offset is {COMMITTED}, the position of the "
        f"consumer is {POSITION}, the log end offset is {END}. The lag is {END - COMMITTED} records.",
    )
    tones: list[Tone] = [
        "gray" if offset < COMMITTED else "green" if offset < POSITION else "amber" for offset in range(END)
    ]
    left, wide = 46, 54
    cells = drawing.cells(left, 90, range(END), tones, width=wide)
    drawing.box(left + END * wide, 90, wide, 34, str(END), tone="plain", dashed=True)
    for offset, name in ((COMMITTED, "committed offset"), (POSITION, "position"), (END, "log end offset")):
        x = left + wide * offset + wide / 2
        drawing.text(x, 40, f"{name} {offset}", size=13)
        drawing.arrow((x, 48), (x, 89))
    start, end = cells[COMMITTED].x + 2, left + END * wide - 2
    drawing.arrow(((start + end) / 2, 150), (start, 150), tone="violet")
    drawing.arrow(((start + end) / 2, 150), (end, 150), tone="violet")
    drawing.text((start + end) / 2, 172, f"lag: {END - COMMITTED} records", tone="violet")
    legend: tuple[tuple[int, Tone, str], ...] = (
        (40, "gray", "read and committed"),
        (240, "green", "read only"),
        (380, "amber", "not read yet"),
    )
    for x, tone, words in legend:
        drawing.box(x, 200, 18, 18, tone=tone)
        drawing.text(x + 26, 214, words, anchor="start", size=13)
    return drawing


def assignment() -> Drawing:
    """Draw how the range assignor distributes four partitions over one, two and five members."""
    drawing = Drawing(640, 240, _in_words())
    for column, size in enumerate((1, 2, 5)):
        left = 8 + 214 * column
        drawing.text(left + 98, 20, f"{size} member{'s' * (size > 1)}", strong=True)
        for row, (member, owned) in enumerate(_assigned(size).items()):
            y = 36 + 40 * row
            drawing.box(left, y, 80, 32, member, tone="green" if owned else "gray", dashed=not owned)
            drawing.cells(left + 84, y + 2, [f"p{number}" for number in owned], "amber", width=27, height=28)
        if column:
            drawing.line((left - 10, 10), (left - 10, 230), tone="gray", dashed=True)
    return drawing


def _assigned(size: int) -> dict[str, list[int]]:
    """Return the partitions of each member of a group with `size` members: `{member: [partition, ...]}`."""
    members = [SubscribedMember(f"member {number}", frozenset({"orders"})) for number in range(1, size + 1)]
    assigned = assign_range(members, {"orders": COUNT_OF_PARTITIONS})
    return {name: sorted(partition.partition for partition in owned) for name, owned in assigned.items()}


def _in_words() -> str:
    parts = []
    for size in (1, 2, 5):
        assigned = ((name, ", ".join(f"p{n}" for n in numbers)) for name, numbers in _assigned(size).items())
        owned = (f"{name} has {partitions or 'none'}" for name, partitions in assigned)
        parts.append(f"In a group of {size}: {'; '.join(owned)}.")
    return f"{COUNT_OF_PARTITIONS} partitions, p0 to p{COUNT_OF_PARTITIONS - 1}. " + " ".join(parts)
