"""The drawing for the documentation page on the fallacies of distributed computing."""

from __future__ import annotations

from drawing import Drawing


def three_failures() -> Drawing:
    """Draw three failures that a client cannot distinguish."""
    drawing = Drawing(
        640,
        210,
        "Three pairs of a client and a server. First, the request is lost on its way. Second, the server fails. Third, "
        "the answer is lost on its way. The client waits in all three cases.",
    )
    for number, title in enumerate(("request lost", "server failed", "answer lost")):
        left = 10 + 214 * number
        client = drawing.box(left, 70, 62, 70, "client", tone="blue")
        server = drawing.box(left + 116, 70, 62, 70, "server", tone="red" if number == 1 else "amber")
        drawing.text(left + 89, 36, title, strong=True)
        middle = left + 89
        if number == 0:
            drawing.line((client.right.x, 90), (middle - 8, 90))
            drawing.cross(middle, 90)
        else:
            drawing.arrow((client.right.x, 90), (server.x, 90))
        if number == 1:
            drawing.cross(server.top.x, 126, 8)
        if number == 2:
            drawing.line((server.x, 122), (middle + 8, 122))
            drawing.cross(middle, 122)
        drawing.text(left + 31, 166, "no answer", tone="red", size=13)
    drawing.text(320, 200, "the client sees the same each time", size=13)
    return drawing
