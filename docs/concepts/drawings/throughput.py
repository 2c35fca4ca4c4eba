"""The drawings for the documentation page that explains batches and the speed of a log."""

from __future__ import annotations

from itertools import pairwise

from drawing import Drawing, Tone

from hmb.records import Record, encode_batch

VALUE = b"x" * 100
COUNTS = (1, 2, 5, 10, 50, 100)


def bytes_of_record(count: int) -> float:
    """Return the mean number of bytes per record in an encoded batch of `count` records."""
    batch = encode_batch([Record(timestamp=number, value=VALUE) for number in range(count)])
    return len(batch) / count


def overhead() -> Drawing:
    """Draw one bar for each of six batches, which contain 1, 2, 5, 10, 50 and 100 records.

    Each record has a value of 100 bytes. The height of a bar shows the batch's size divided by its number of records.
    """
    sizes = {count: bytes_of_record(count) for count in COUNTS}
    in_words = ", ".join(f"{size:.0f} bytes with {count}" for count, size in sizes.items())
    drawing = Drawing(620, 270, f"Bytes for each record of 100 bytes, by the number of records in a batch: {in_words}.")
    left, bottom, high = 90, 220, 180
    scale = high / max(sizes.values())
    for column, (count, size) in enumerate(sizes.items()):
        x = left + 82 * column
        drawing.box(x, bottom - len(VALUE) * scale, 56, len(VALUE) * scale, tone="amber")
        drawing.box(x, bottom - size * scale, 56, (size - len(VALUE)) * scale, tone="violet")
        drawing.text(x + 28, bottom - size * scale - 8, f"{size:.0f} B", size=13)
        drawing.text(x + 28, bottom + 20, str(count))
    drawing.line((left - 16, bottom - len(VALUE) * scale), (left + 490, bottom - len(VALUE) * scale), dashed=True)
    drawing.text(left - 22, bottom - len(VALUE) * scale + 5, "100 B", anchor="end", size=13)
    drawing.text(left + 235, bottom + 44, "records in a batch", size=13)
    return drawing


def copies() -> Drawing:
    """Draw the path of bytes from the disk to the network, with and without sendfile."""
    drawing = Drawing(
        640,
        230,
        "Without sendfile, bytes go from the disk to the page cache, to the memory of the program, to the socket, "
        "to the network. With sendfile they go from the page cache to the network.",
    )
    for y, title, steps in (
        (40, "read and write", ("disk", "page cache", "program", "socket", "network")),
        (150, "sendfile", ("disk", "page cache", "network")),
    ):
        drawing.text(10, y - 12, title, anchor="start", strong=True)
        places = {"disk": 10, "page cache": 118, "program": 250, "socket": 378, "network": 506}
        boxes = []
        for step in steps:
            tone: Tone = "red" if step == "program" else "amber" if step in ("disk", "page cache") else "plain"
            boxes.append(drawing.box(places[step], y, 108 if step != "disk" else 84, 44, step, tone=tone))
        for before, after in pairwise(boxes):
            drawing.arrow(before.right, after.left)
    return drawing
