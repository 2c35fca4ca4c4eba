"""The drawings for the documentation page on messages, queues and topics."""

from __future__ import annotations

from drawing import Drawing


def queue() -> Drawing:
    """Draw a queue between a producer and a consumer."""
    drawing = Drawing(
        620,
        150,
        "A producer puts message 5 at the end of a queue that holds messages 2, 3 and 4. "
        "A consumer takes message 1 from the front of the queue. Message 0, which it took before, is gone.",
    )
    producer = drawing.box(10, 55, 100, 44, "producer", tone="blue")
    cells = drawing.cells(220, 60, [4, 3, 2], "amber", width=46)
    consumer = drawing.box(510, 55, 100, 44, "consumer", tone="green")
    drawing.arrow(producer.right, cells[0].left)
    drawing.arrow(cells[-1].right, consumer.left)
    drawing.text(165, 67, "put 5")
    drawing.text(434, 67, "get 1")
    drawing.text(289, 45, "queue", strong=True)
    drawing.text(289, 118, "newest message … oldest message", size=13)
    drawing.box(542, 108, 36, 30, "0", tone="gray", dashed=True)
    return drawing


def topic() -> Drawing:
    """Draw a topic with one producer and two consumers at different positions."""
    drawing = Drawing(
        620,
        240,
        "A producer appends message 5 to the topic orders, which holds messages 0 to 4. "
        "The kitchen reads message 3 next, and the billing program reads message 1 next. All messages stay.",
    )
    producer = drawing.box(10, 92, 100, 44, "web page", tone="blue")
    cells = drawing.cells(200, 97, range(5), "amber", width=52)
    drawing.box(460, 97, 52, 34, "5", tone="violet", dashed=True)
    drawing.text(330, 84, "topic orders", strong=True)
    drawing.line(producer.right, (150, 114), (150, 60), (486, 60))
    drawing.arrow((486, 60), (486, 96))
    drawing.text(430, 50, "publish")
    for name, cell in (("billing", cells[1]), ("kitchen", cells[3])):
        reader = drawing.box(cell.bottom.x - 48, 186, 96, 40, name, tone="green")
        drawing.arrow(cell.bottom, reader.top)
    drawing.text(450, 200, "each consumer has", anchor="start", size=13)
    drawing.text(450, 217, "its own position", anchor="start", size=13)
    return drawing
