"""Defines the colors of drawings. A tone such as "blue" has a color for edges and a color for areas.

A page of the website contains these colors as CSS variables, so that the browser chooses the colors of the reader's
theme. A book for an e-reader has no such variables, and always uses the colors for a light page.
"""

from __future__ import annotations

from typing import Literal

Tone = Literal["plain", "blue", "amber", "green", "red", "gray", "violet"]
Colors = dict[Tone, tuple[str, str]]  # tone -> the color of edges, and the color of areas

ON_LIGHT: Colors = {
    "plain": ("#64748b", "#ffffff"),
    "blue": ("#1d4ed8", "#dbeafe"),
    "amber": ("#a16207", "#fef3c7"),
    "green": ("#15803d", "#dcfce7"),
    "red": ("#dc2626", "#fee2e2"),
    "gray": ("#94a3b8", "#f1f5f9"),
    "violet": ("#7c3aed", "#ede9fe"),
}
ON_DARK: Colors = {
    "plain": ("#94a3b8", "#1a1c1e"),
    "blue": ("#60a5fa", "#1e3a5f"),
    "amber": ("#eab308", "#453612"),
    "green": ("#4ade80", "#14432a"),
    "red": ("#f87171", "#581c1c"),
    "gray": ("#64748b", "#262b33"),
    "violet": ("#a78bfa", "#3b2d63"),
}


def css_variables(colors: Colors) -> dict[str, str]:
    """Return two CSS variables for each tone of a drawing.

    For the tone "blue", `drawing-blue` is the color of edges, and `drawing-blue-area` is the color of areas.
    """
    edges = {f"drawing-{tone}": edge for tone, (edge, _) in colors.items()}
    return edges | {f"drawing-{tone}-area": area for tone, (_, area) in colors.items()}
