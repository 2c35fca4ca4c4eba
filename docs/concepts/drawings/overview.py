"""The drawing on the first page of the part about concepts."""

from __future__ import annotations

from drawing import Drawing


def broker() -> Drawing:
    """Draw producers, a broker with two topics, and two consumer groups."""
    drawing = Drawing(
        640,
        290,
        "Two producers on the left, a web page and an app. In the middle a broker with the topic orders, which has two "
        "partitions, and the topic payments. On the right the group kitchen with two consumers, and the group "
        "billing with one. Arrows lead from the producers to the topics, and from the topics to the consumers.",
    )
    web = drawing.box(8, 70, 96, 40, "web page", tone="blue")
    app = drawing.box(8, 180, 96, 40, "app", tone="blue")
    drawing.text(56, 24, "producers", strong=True)
    drawing.box(158, 36, 300, 244, tone="plain")
    drawing.text(308, 24, "broker", strong=True)
    names = ("topic orders, partition 0", "topic orders, partition 1", "topic payments, partition 0")
    logs = [drawing.box(180, y, 256, 40, name, tone="amber") for y, name in zip((84, 138, 222), names, strict=True)]
    drawing.arrow(web.right, logs[0].left)
    drawing.arrow(web.right, logs[1].left)
    drawing.arrow(app.right, logs[2].left)
    drawing.text(580, 24, "groups", strong=True)
    drawing.box(528, 56, 106, 128, tone="gray", dashed=True)
    drawing.text(581, 76, "kitchen", size=13)
    drawing.box(528, 204, 106, 70, tone="gray", dashed=True)
    drawing.text(581, 222, "billing", size=13)
    readers = [drawing.box(540, y, 82, 34, name, tone="green") for y, name in ((88, "Ann"), (138, "Ben"), (230, "Eve"))]
    for log, reader in zip(logs, readers, strict=True):
        drawing.arrow(log.right, reader.left)
    return drawing
