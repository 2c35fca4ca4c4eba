"""Draws two ways to connect systems: each system with all others (a mesh), or all systems with a central platform."""

from __future__ import annotations

from math import cos, pi, sin

from drawing import Drawing

SYSTEMS = ("web", "kitchen", "billing", "delivery", "stats", "ads", "fraud")
RADIUS = 118


def mesh_and_hub() -> Drawing:
    """Draw the same systems twice: first a mesh that connects each pair, then connections to one platform."""
    drawing = Drawing(
        640,
        320,
        f"The systems {', '.join(SYSTEMS)}. Left: a line between each pair, {len(SYSTEMS) * (len(SYSTEMS) - 1) // 2} "
        f"lines. Right: a platform in the middle and a line from it to each system, {len(SYSTEMS)} lines.",
    )
    for center, title in ((160, "mesh"), (480, "central platform")):
        points = [_point(center, number) for number in range(len(SYSTEMS))]
        if title == "mesh":
            for number, point in enumerate(points):
                for other in points[number + 1 :]:
                    drawing.line(point, other, tone="red")
        else:
            for point in points:
                drawing.line(point, (center, 175), tone="green")
            drawing.box(center - 48, 153, 96, 44, "platform", tone="amber")
        for (x, y), name in zip(points, SYSTEMS, strict=True):
            drawing.box(x - 38, y - 15, 76, 30, name)
        drawing.text(center, 20, title, strong=True)
    return drawing


def _point(center: float, number: int) -> tuple[float, float]:
    """Return the position of `SYSTEMS[number]` on a circle whose center has the x coordinate `center`."""
    angle = 2 * pi * number / len(SYSTEMS) - pi / 2
    return center + RADIUS * cos(angle), 175 + RADIUS * sin(angle)
