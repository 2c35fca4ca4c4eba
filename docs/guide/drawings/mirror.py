"""The drawing of the chapter on mirrors: a mirror copies batches to a target cluster, and stores its position there."""

from __future__ import annotations

from drawing import Drawing


def flow() -> Drawing:
    """Draw how a mirror copies a log from a source cluster to a target cluster.

    The log of the source contains a transaction marker at offset 3, which the mirror does not copy. The record after
    the marker has offset 4 in the source, and therefore offset 3 in the target.
    """
    drawing = Drawing(
        760,
        330,
        "Left: the log orders-0 of the source, with the records a, b and c at offsets 0 to 2, a marker at offset 3, "
        "and the records d and e at offsets 4 and 5. The group billing has committed offset 4. Middle: the mirror "
        "fetches whole batches and produces them. Right: the log orders-0 of the target, with a to e at offsets 0 to "
        "4. The group of the mirror has committed position 6, and the group billing has the translated offset 3.",
    )
    for x, title in ((130, "source cluster"), (380, "mirror"), (630, "target cluster")):
        drawing.text(x, 22, title, strong=True)
    _log(drawing, 22, ["a", "b", "c", "M", "d", "e"], "M is a marker")
    _log(drawing, 540, ["a", "b", "c", "d", "e"], "")
    reader = drawing.box(300, 74, 160, 34, "consumer side", tone="green")
    writer = drawing.box(300, 140, 160, 34, "producer side", tone="blue")
    drawing.arrow((238, 91), reader.left, tone="green")
    drawing.arrow(reader.bottom, writer.top, tone="violet")
    drawing.arrow(writer.right, (540, 157), (540, 112), tone="blue")
    drawing.text(500, 176, "Produce", size=13)
    drawing.text(270, 83, "Fetch", size=13)
    drawing.text(388, 128, "whole batches", size=13, anchor="start")
    positions = drawing.box(540, 192, 200, 34, "group of the mirror: 6", tone="amber")
    drawing.arrow((420, 174), (420, 209), positions.left, tone="violet")
    drawing.text(430, 202, "position", size=13, anchor="start")
    groups = drawing.box(22, 262, 200, 34, "group billing: 4", tone="amber")
    translation = drawing.box(290, 262, 180, 34, "translation: 4 to 3", tone="violet")
    copied = drawing.box(540, 262, 200, 34, "group billing: 3", tone="amber")
    drawing.arrow(groups.right, translation.left)
    drawing.arrow(translation.right, copied.left)
    return drawing


def _log(drawing: Drawing, x: float, records: list[str], note: str) -> None:
    tones = ["gray" if record == "M" else "amber" for record in records]
    for offset, box in enumerate(drawing.cells(x, 74, records, tones)):  # type: ignore[arg-type]
        drawing.text(box.top.x, 66, str(offset), size=13)
    drawing.text(x, 48, "orders-0", anchor="start", size=13)
    if note:
        drawing.text(x, 126, note, anchor="start", size=13)
