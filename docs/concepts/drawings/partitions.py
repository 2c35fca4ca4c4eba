"""The drawing for the documentation page on partitions."""

from __future__ import annotations

from drawing import Drawing

from hmb.client.producing.partitioner import partition_of_key

ORDERS = ("ada", "bob", "ada", "joe", "mia", "bob")  # the customer of each order, in the order in which they were sent
PARTITIONS = 3


def by_key() -> Drawing:
    """Draw how records with keys are distributed over three partitions."""
    logs: list[list[str]] = [[] for _ in range(PARTITIONS)]
    for number, customer in enumerate(ORDERS, 1):
        logs[partition_of_key(customer.encode(), PARTITIONS)].append(f"{customer} {number}")
    in_words = " ".join(f"Partition {number} receives {', '.join(log)}." for number, log in enumerate(logs))
    drawing = Drawing(640, 240, f"A producer sends the orders of the customers {', '.join(ORDERS)}. {in_words}")
    producer = drawing.box(10, 90, 100, 44, "producer", tone="blue")
    partitioner = drawing.box(150, 84, 130, 56, "hash of key", f"modulo {PARTITIONS}", tone="violet")
    drawing.arrow(producer.right, partitioner.left)
    for number, log in enumerate(logs):
        y = 20 + 78 * number
        drawing.text(330, y + 2, f"partition {number}", anchor="start", size=13)
        cells = drawing.cells(330, y + 10, log, "amber", width=66)
        for offset, cell in enumerate(cells):
            drawing.text(cell.bottom.x, y + 58, str(offset), size=12)
        drawing.arrow(partitioner.right, (326, y + 27))
    return drawing
