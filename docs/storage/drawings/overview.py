"""Draws the path of a record batch through the broker, for the first page of the storage chapters."""

from __future__ import annotations

from drawing import Drawing


def way() -> Drawing:
    """Draw the path of a batch from a producer to the disk and to a consumer."""
    drawing = Drawing(
        496,
        346,
        "A producer sends a batch. The broker checks it, assigns its offsets and writes it to the active segment. The "
        "bytes are then in the page cache. A sync writes them to the disk. A consumer gets them from the page cache. "
        "Retention and compaction remove old batches, and recovery checks the files at the next start.",
    )
    producer = drawing.box(8, 12, 120, 40, "producer", tone="blue")
    batch = drawing.box(8, 96, 120, 46, "record batch", tone="violet")
    log = drawing.box(186, 96, 136, 46, "log", "assigns offsets", tone="amber")
    file = drawing.box(186, 184, 136, 46, "active segment", "in page cache", tone="amber")
    disk = drawing.box(186, 288, 136, 46, "disk", tone="amber")
    consumer = drawing.box(380, 184, 108, 46, "consumer", tone="green")
    old = drawing.box(8, 288, 120, 46, "old segments", tone="gray", dashed=True)
    drawing.arrow(producer.bottom, batch.top)
    drawing.text(78, 79, "Produce", anchor="start", size=13)
    drawing.arrow(batch.right, log.left)
    drawing.text(157, 112, "append", size=13)
    drawing.arrow(log.bottom, file.top)
    drawing.text(262, 168, "write", anchor="start", size=13)
    drawing.arrow(file.bottom, disk.top)
    drawing.text(262, 254, "sync (group commit)", anchor="start", size=13)
    drawing.text(262, 272, "recovery after a crash", anchor="start", size=13)
    drawing.arrow(file.right, consumer.left)
    drawing.text(351, 200, "Fetch", size=13)
    drawing.arrow(disk.left, old.right)
    drawing.text(8, 262, "retention,", anchor="start", size=13)
    drawing.text(8, 279, "compaction", anchor="start", size=13)
    return drawing
