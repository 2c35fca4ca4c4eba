"""The drawing for the documentation page on batch and stream processing."""

from __future__ import annotations

from drawing import Drawing, Tone

COUNTED, END = 6, 10  # the batch layer has counted the records at offsets below COUNTED


def lambda_architecture() -> Drawing:
    """Draw how a batch layer reads the older records of a log, and a speed layer reads the newer records."""
    drawing = Drawing(
        640,
        300,
        f"A log with offsets 0 to {END - 1}. The batch layer reads offsets 0 to {COUNTED - 1} and produces a complete "
        f"but old result. The speed layer reads offsets {COUNTED} to {END - 1}. The serving layer adds both results "
        "and answers a query.",
    )
    tones: list[Tone] = ["amber" if offset < COUNTED else "violet" for offset in range(END)]
    drawing.text(60, 22, "log of all events", anchor="start", strong=True)
    drawing.cells(60, 34, range(END), tones, width=52)
    batch = drawing.box(100, 130, 210, 52, "batch layer", "all events, every night", tone="amber")
    speed = drawing.box(390, 130, 180, 52, "speed layer", "each event at once", tone="violet")
    serving = drawing.box(250, 236, 180, 48, "serving layer", tone="green")
    drawing.arrow((batch.top.x, 68), batch.top)
    drawing.arrow((speed.top.x, 68), speed.top)
    drawing.arrow(batch.bottom, (310, 236))
    drawing.arrow(speed.bottom, (370, 236))
    query = drawing.box(520, 240, 100, 40, "query", tone="plain")
    drawing.arrow(query.left, serving.right)
    return drawing
