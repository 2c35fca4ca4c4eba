"""The drawings for the documentation page on delivery guarantees."""

from __future__ import annotations

from drawing import Drawing


def lost_answer() -> Drawing:
    """Draw two cases in which no acknowledgment arrives: a lost request, and a lost acknowledgment."""
    drawing = Drawing(
        640,
        330,
        "Two cases. In the first, the request for record A is lost, the producer sends again, and the log holds A "
        "once. In the second, the broker appends A, its acknowledgment is lost, the producer sends again, and the log "
        "holds A twice.",
    )
    for top, request_is_lost in ((30, True), (190, False)):
        producer, broker = top + 100, top + 20
        for y, name in ((producer, "producer"), (broker, "broker")):
            drawing.text(84, y + 5, name, anchor="end")
            drawing.arrow((94, y), (500, y), tone="gray")
        lost = "request" if request_is_lost else "acknowledgment"
        drawing.text(96, top - 8, f"the {lost} is lost", anchor="start", size=13)
        if request_is_lost:
            drawing.line((120, producer), (150, producer - 40))
            drawing.cross(153, producer - 44)
        else:
            drawing.arrow((120, producer), (180, broker))
            drawing.line((190, broker), (220, broker + 40))
            drawing.cross(223, broker + 44)
        drawing.text(112, producer + 20, "send A", size=13)
        drawing.text(290, producer + 20, "send A again", size=13)
        drawing.arrow((290, producer), (350, broker))
        drawing.arrow((360, broker), (420, producer))
        drawing.text(420, producer + 20, "acknowledged", size=13)
        drawing.text(524, broker - 2, "log:", anchor="start", size=13)
        drawing.cells(524, broker + 8, ["A"] if request_is_lost else ["A", "A"], "amber" if request_is_lost else "red")
    return drawing


def commit_order() -> Drawing:
    """Draw a crash between the commit and the processing of a record, for both orders of the two steps."""
    drawing = Drawing(
        640,
        250,
        "Two lines of time. Commit first: commit 2, crash; the successor goes on with order 3, so order 2 is never "
        "baked. Bake first: bake 2, crash; the successor bakes order 2 again, so it is baked twice.",
    )
    rows = (
        ("commit first", ("commit 1", "bake 1", "commit 2"), ("commit 3", "bake 3"), "order 2 is lost"),
        ("bake first", ("bake 1", "commit 1", "bake 2"), ("bake 2", "commit 2"), "order 2 is baked twice"),
    )
    for number, (title, before, after, result) in enumerate(rows):
        y = 34 + 122 * number
        drawing.text(10, y - 10, title, anchor="start", strong=True)
        for step, words in enumerate(before):
            drawing.box(10 + 94 * step, y, 88, 36, words, tone="green" if words.startswith("bake") else "amber")
        drawing.cross(314, y + 18, 10)
        drawing.text(314, y + 54, "crash", tone="red", size=13)
        for step, words in enumerate(after):
            drawing.box(346 + 94 * step, y, 88, 36, words, tone="green" if words.startswith("bake") else "amber")
        drawing.text(440, y + 54, "successor", size=13)
        drawing.text(10, y + 66, result, anchor="start", tone="red")
    return drawing
