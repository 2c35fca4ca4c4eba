"""The drawings for the page that compares the models "point to point" and "publish and subscribe"."""

from __future__ import annotations

from drawing import Drawing


def two_models() -> Drawing:
    """Draw a work queue with two consumers on the left, and a topic with two subscribers on the right."""
    drawing = Drawing(
        640,
        260,
        "Left, point to point: a producer puts messages 1 to 4 into a queue. Ann receives 1 and 3, Ben receives 2 and "
        "4. Right, publish and subscribe: the kitchen receives messages 1 to 4, and billing receives messages 1 to 4.",
    )
    halves = (
        (0, "point to point", "queue", (("Ann", (1, 3)), ("Ben", (2, 4)))),
        (330, "publish and subscribe", "topic", (("kitchen", (1, 2, 3, 4)), ("billing", (1, 2, 3, 4)))),
    )
    for left, title, store, readers in halves:
        drawing.text(left + 150, 18, title, strong=True)
        producer = drawing.box(left + 100, 34, 100, 36, "producer", tone="blue")
        broker = drawing.box(left + 100, 100, 100, 36, store, tone="amber")
        drawing.arrow(producer.bottom, broker.top)
        for number, (name, messages) in enumerate(readers):
            x = left + 12 + 150 * number
            reader = drawing.box(x, 176, 126, 34, name, tone="green")
            drawing.arrow(broker.bottom, reader.top)
            cells = [str(message) for message in messages]
            drawing.cells(x + 63 - 14 * len(cells), 218, cells, "plain", width=28, height=28)
    drawing.line((320, 10), (320, 250), tone="gray", dashed=True)
    return drawing


def groups() -> Drawing:
    """Draw one topic that two consumer groups read."""
    drawing = Drawing(
        640,
        230,
        "The topic orders holds messages 1 to 4. The group kitchen has two members: Ann receives 1 and 3, Ben "
        "receives 2 and 4. The group billing has one member, which receives 1 to 4.",
    )
    producer = drawing.box(10, 96, 96, 40, "web page", tone="blue")
    topic = drawing.box(170, 96, 120, 40, "topic orders", tone="amber")
    drawing.arrow(producer.right, topic.left)
    drawing.box(370, 8, 260, 122, tone="gray", dashed=True)
    drawing.text(382, 28, "group kitchen", anchor="start", size=13)
    drawing.box(370, 146, 260, 74, tone="gray", dashed=True)
    drawing.text(382, 166, "group billing", anchor="start", size=13)
    readers = (("Ann", 38, (1, 3)), ("Ben", 86, (2, 4)), ("billing", 176, (1, 2, 3, 4)))
    for name, y, messages in readers:
        reader = drawing.box(384, y, 90, 36, name, tone="green")
        drawing.arrow(topic.right, reader.left)
        drawing.cells(488, y + 4, [str(message) for message in messages], "plain", width=30, height=28)
    return drawing
