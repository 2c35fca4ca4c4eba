"""Draws three pictures of Hailstorm: the topology `trending`, a low water mark, and a snapshot."""

from __future__ import annotations

from drawing import Box, Drawing, Tone

from hmb.cli.hailstorm.examples.trending import TOPIC, topology
from hmb.client import TopicPartition
from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.payload import Payloads
from hmb.hailstorm.processors.low_water_marks import LowWaterMarks
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Declaration, Processors

WIDTH, HEIGHT, COLUMN, ROW = 106, 34, 150, 50  # pixels: the size of a box, and the distances between boxes
FIRST, SECOND = TopicPartition("tags", 0), TopicPartition("tags", 1)


def tone_of(node: Declaration) -> Tone:
    """Return the tone (the color) in which a drawing shows a spout, a bolt or a sink."""
    if isinstance(node.runs, Spout):
        return "amber"
    return "violet" if isinstance(node.runs, Bolt) else "green"


def trending() -> Drawing:
    """Draw the example `trending`: its processors as boxes, and the channels between them as arrows."""
    processors = Processors(topology, {TOPIC: range(2)})
    nodes = topology.in_order()
    most = max(len(processors.targets(node)) for node in nodes)
    drawing = Drawing(
        COLUMN * len(nodes) - COLUMN + WIDTH + 20,
        ROW * most + 34,
        "The processors of the topology trending: "
        + ", then ".join(" and ".join(processors.targets(node)) for node in nodes)
        + ". Each processor sends to each processor of the next column.",
    )
    boxes: dict[str, Box] = {}
    for column, node in enumerate(nodes):
        names = processors.targets(node)
        top = 30 + (most - len(names)) * ROW / 2
        drawing.text(10 + column * COLUMN + WIDTH / 2, 16, node.name, size=13, strong=True)
        for row, name in enumerate(names):
            boxes[name] = drawing.box(10 + column * COLUMN, top + row * ROW, WIDTH, HEIGHT, name, tone=tone_of(node))
    for name, processor in processors.by_name.items():
        for follower in processors.followers[processor.node.name]:
            for target in processors.targets(follower):
                drawing.arrow(boxes[name].right, boxes[target].left)
    return drawing


def low_water_marks() -> Drawing:
    """Draw how a bolt (a processing step) computes its low water mark from the marks of three other bolts.

    The three bolts send tuples to the bolt topn-0. For one partition, their marks are the offsets 7, 9 and 8. The
    mark of topn-0 is the smallest of these offsets, 7. The bolt topn-0 receives no more tuples from records below
    offset 7.
    """
    sent = {"count-0": (7, 40), "count-1": (9, 38), "count-2": (8, 41)}
    everyone = frozenset(sent)
    marks = LowWaterMarks({FIRST: everyone, SECOND: everyone}, Clock({FIRST: 0, SECOND: 0}))
    drawing = Drawing(
        560,
        190,
        "count-0 sends the mark 7 and 40, count-1 sends 9 and 38, count-2 sends 8 and 41. The low water mark of topn-0 "
        "is the minimum of each partition: 7 and 38.",
    )
    arrows = []
    for row, (sender, (first, second)) in enumerate(sent.items()):
        mark = Clock({FIRST: first, SECOND: second})
        marks.advance(Payloads(1, sender, ("count",), FIRST, mark))
        box = drawing.box(10, 20 + 55 * row, 100, HEIGHT, sender, tone="violet")
        drawing.text(120, 32 + 55 * row, f"tags-0: {first}, tags-1: {second}", anchor="start", size=13)
        arrows.append(box)
    drawing.box(362, 66, 196, 52, "topn-0", f"tags-0: {marks.clock[FIRST]}, tags-1: {marks.clock[SECOND]}",
                tone="violet")  # fmt: skip
    for row, box in enumerate(arrows):
        drawing.arrow((box.right.x, box.right.y + 4), (340, box.right.y + 4), (360, 80 + 12 * row))
    return drawing


def split() -> Drawing:
    """Draw how a bolt splits its state into the states A and B for a snapshot, and later merges A and B."""
    drawing = Drawing(
        640,
        210,
        "The state S of a bolt becomes A when the snapshot begins. Tuples below the clock enter A, and later tuples "
        "wait. When the low water mark reaches the clock, A is saved, and tuples enter B. Then A and B become S.",
    )
    drawing.text(10, 20, "SpoutsPaused(C)", anchor="start", size=13, strong=True)
    drawing.text(230, 20, "low water mark reaches C", anchor="start", size=13, strong=True)
    drawing.text(490, 20, "saved", anchor="start", size=13, strong=True)
    before = drawing.box(10, 80, 70, 40, "S", tone="violet")
    gathering = drawing.box(120, 50, 90, 40, "A grows", tone="violet")
    waiting = drawing.box(120, 140, 90, 40, "wait", tone="gray", dashed=True)
    frozen = drawing.box(260, 50, 180, 40, "A is saved", tone="gray")
    after = drawing.box(260, 140, 180, 40, "B grows", tone="violet")
    drawing.box(490, 80, 140, 40, "S = merge(A, B)", tone="violet")
    drawing.arrow(before.right, gathering.left)
    drawing.arrow(gathering.right, frozen.left)
    drawing.arrow(waiting.right, after.left)
    drawing.arrow(frozen.right, (468, 70), (488, 94))
    drawing.arrow(after.right, (468, 160), (488, 108))
    drawing.text(165, 106, "tuples below C", size=12)
    drawing.text(165, 196, "tuples at or above C", size=12)
    return drawing
