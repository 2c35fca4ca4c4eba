"""The drawings for the documentation page on replicas."""

from __future__ import annotations

from drawing import Drawing, Tone

LOG_ENDS = {"leader A": 6, "follower B": 5, "follower C": 4}


def high_watermark() -> Drawing:
    """Draw the logs of a leader and two followers, and the high watermark."""
    watermark = min(LOG_ENDS.values())
    ends = ", ".join(f"{name} {end}" for name, end in LOG_ENDS.items())
    drawing = Drawing(620, 250, f"Three logs with the log end offsets {ends}. The high watermark is {watermark}.")
    left, wide = 130, 56
    for row, (name, end) in enumerate(LOG_ENDS.items()):
        y = 46 + 56 * row
        drawing.text(118, y + 22, name, anchor="end")
        tones: list[Tone] = ["amber" if offset < watermark else "plain" for offset in range(end)]
        cells = drawing.cells(left, y, range(end), tones, width=wide)
        drawing.text(cells[-1].right.x + 12, y + 22, f"log end offset {end}", anchor="start", size=13)
    x = left + wide * watermark
    drawing.line((x, 32), (x, 206), tone="violet", dashed=True)
    drawing.text(x, 22, f"high watermark {watermark}", tone="violet")
    drawing.arrow((x - 6, 226), (left, 226), tone="green")
    drawing.text((left + x) / 2, 245, "consumers may read these records", tone="green", size=13)
    return drawing


def epochs() -> Drawing:
    """Draw the logs of an old and a new leader, before and after the old leader truncates its log."""
    drawing = Drawing(
        640,
        270,
        "Before: broker A has offsets 0 to 4, all of epoch 0. Broker B has offsets 0 to 3 of epoch 0 and offsets 4 and "
        "5 of epoch 1. After: A has deleted its record at offset 4 and has copied offsets 4 and 5 of epoch 1.",
    )
    split = 4  # the offset at which epoch 0 ended
    rows = (("A, before", (0, 0, 0, 0, 0)), ("B, new leader", (0, 0, 0, 0, 1, 1)), ("A, after", (0, 0, 0, 0, 1, 1)))
    left, wide = 136, 62
    for row, (name, epochs_of_records) in enumerate(rows):
        y = 50 + 64 * row
        drawing.text(126, y + 25, name, anchor="end")
        records = list(enumerate(epochs_of_records))
        tones: list[Tone] = ["amber" if n < split else "violet" if epoch else "red" for n, epoch in records]
        labels = [f"{offset} / {epoch}" for offset, epoch in records]
        drawing.cells(left, y, labels, tones, width=wide, height=40)
    drawing.text(left, 24, "offset / leader epoch", anchor="start", size=13)
    x = left + split * wide
    drawing.line((x, 36), (x, 226), tone="violet", dashed=True)
    drawing.text(x, 246, f"epoch 0 ended at offset {split}", tone="violet", size=13)
    drawing.text(left + 5 * wide + 10, 75, "truncated", anchor="start", tone="red", size=13)
    return drawing
