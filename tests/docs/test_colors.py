"""Tests of the colors of the documentation: each text has enough contrast to its background.

The Web Content Accessibility Guidelines (WCAG 2.1, criterion 1.4.3) define the contrast of two colors. A text needs a
contrast of at least 4.5 to its background.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest

from tests.docs.conftest import EXTENSIONS

SETTINGS = (EXTENSIONS.parent / "conf.py").read_text()
LEAST = 4.5
TEXT = {"ON_LIGHT": "#000000", "ON_DARK": "#cfd0d0"}  # the colors of texts in the theme
PAGE = {"ON_LIGHT": "#ffffff", "ON_DARK": "#131416"}  # the colors of pages in the theme


def luminance(color: str) -> float:
    shares = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (share / 12.92 if share <= 0.03928 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("setting", ["pygments_style", "pygments_dark_style"])
def test_code_is_readable_in_every_color(setting: str) -> None:
    pytest.importorskip("a11y_pygments", reason="the theme of Sphinx is not installed; `make docs` installs it")
    from pygments.styles import get_style_by_name

    found = re.search(rf'^{setting} = "(.+)"$', SETTINGS, re.MULTILINE)
    assert found
    style: Any = get_style_by_name(found[1])
    colors = {f"#{look['color']}" for _, look in style if look["color"]}
    assert len(colors) > 5
    assert {color for color in colors if contrast(color, style.background_color) < LEAST} == set()


@pytest.mark.parametrize("theme", ["ON_LIGHT", "ON_DARK"])
def test_a_drawing_is_readable_in_every_tone(monkeypatch: pytest.MonkeyPatch, theme: str) -> None:
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    colors: dict[str, tuple[str, str]] = getattr(importlib.import_module("tones"), theme)
    assert {tone for tone, (_, area) in colors.items() if contrast(TEXT[theme], area) < LEAST} == set()
    # A text outside of a box can have the color of edges. No text is gray, because gray means that something is unused.
    edges = {tone: edge for tone, (edge, _) in colors.items() if tone != "gray"}
    assert {tone for tone, edge in edges.items() if contrast(edge, PAGE[theme]) < LEAST} == set()
