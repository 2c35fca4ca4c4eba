"""The drawings for the documentation page on the log."""

from __future__ import annotations

from drawing import Drawing, Tone

# Each segment is a pair: its base offset, and the offset after its last record.
SEGMENTS = ((0, 1000), (1000, 2000), (2000, 2340))
CHANGES = (("ada", "Main St 1"), ("bob", "Oak St 5"), ("ada", "Elm St 9"), ("eve", "Low St 3"), ("bob", None))


def append() -> Drawing:
    """Draw a log of five records with a producer and two consumers."""
    drawing = Drawing(
        600,
        230,
        "A log of records at offsets 0 to 4. A producer appends the next record at offset 5, the log end offset. "
        "Billing reads at offset 1, the kitchen reads at offset 4.",
    )
    cells = drawing.cells(60, 90, range(5), "amber", width=62)
    end = drawing.box(370, 90, 62, 34, "5", tone="violet", dashed=True)
    producer = drawing.box(490, 20, 100, 40, "producer", tone="blue")
    drawing.line(producer.left, (401, 40))
    drawing.arrow((401, 40), end.top)
    drawing.text(446, 98, "log end", anchor="start", size=13)
    drawing.text(446, 115, "offset", anchor="start", size=13)
    drawing.text(60, 78, "oldest", anchor="start", size=13)
    drawing.text(366, 78, "newest", anchor="end", size=13)
    for name, cell in (("billing", cells[1]), ("kitchen", cells[4])):
        reader = drawing.box(cell.bottom.x - 50, 178, 100, 38, name, tone="green")
        drawing.arrow(cell.bottom, reader.top)
    return drawing


def segments() -> Drawing:
    """Draw the three segments of a log, and the way from an offset to its segment."""
    drawing = Drawing(
        640,
        200,
        "A log of three segment files. The first holds offsets 0 to 999, the second offsets 1000 to 1999. "
        "The third is the active segment: it begins at offset 2000 and grows. Offset 1234 is in the second segment.",
    )
    wanted = 1234
    for number, (base, end) in enumerate(SEGMENTS):
        is_active = number == len(SEGMENTS) - 1
        x = 10 + 210 * number
        file = drawing.box(x, 80, 196, 44, f"offsets {base} to {end - 1}", tone="violet" if is_active else "amber")
        drawing.text(file.bottom.x, 144, f"{base:020}.log", size=13)
        if base <= wanted < end:
            drawing.text(file.top.x, 22, f"offset {wanted}?")
            drawing.arrow((file.top.x, 30), file.top)
    drawing.text(108, 66, "deleted first", size=13)
    drawing.text(528, 66, "active segment, grows", size=13)
    drawing.text(320, 184, "one file for each segment", size=13)
    return drawing


def compaction() -> Drawing:
    """Draw a log before and after its compaction. The log contains the street addresses of customers."""
    drawing = Drawing(
        620,
        250,
        "Before: five records, offsets 0 to 4, with keys ada, bob, ada, eve, bob; the last value of bob is null. "
        "After: the records at offsets 2, 3 and 4 are left. Later the tombstone at offset 4 is removed as well.",
    )
    newest = {key: offset for offset, (key, _) in enumerate(CHANGES)}
    for title, y, kept in (("before", 30, range(len(CHANGES))), ("after", 150, sorted(newest.values()))):
        drawing.text(60, y + 40, title, anchor="end", strong=True)
        for offset in kept:
            key, value = CHANGES[offset]
            x = 76 + 108 * offset
            is_tombstone = value is None
            tone: Tone = "gray" if is_tombstone else "amber"
            drawing.box(x, y, 104, 56, key, value or "(null)", tone=tone, dashed=is_tombstone)
            drawing.text(x + 52, y + 74, f"offset {offset}", size=13)
    return drawing
