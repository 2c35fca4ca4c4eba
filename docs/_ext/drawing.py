"""Makes drawings from code. The class `Drawing` is an SVG canvas, and the directive `drawing` shows it on a page.

For example, these lines call the function `append`, and show its drawing with a caption:
    ```{drawing} drawings/log.py:append
    The producer appends a record at the end of the log.
    ```

The argument of the directive `drawing` names a Python file (relative to the page) and a function in this file. The
function returns a `Drawing`, and can run HMB's code to draw the results. The text below the argument is the caption.

A *tone* is the name of a color in a drawing. Each tone has one meaning in the whole book:
    blue      a producer
    amber     a broker and its log
    green     a consumer
    red       something lost or broken
    gray      something that no longer exists or is not used
    violet    the subject of the drawing

A tone has different colors on light pages and on dark pages (tones.py). On the website, the browser chooses the colors
(hmb.css). A book for an e-reader shows the colors for light pages.

Every drawing has a text alternative: a description for readers who cannot see the drawing. The class `Drawing` checks
that each text fits into its box and that each shape is on the canvas.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from tones import ON_LIGHT, Tone

Anchor = Literal["start", "middle", "end"]
TEXT_SIZE = 15.0  # pixels, the usual font size
LETTER = 0.56  # the mean width of a letter, divided by the font size
WIDE_LETTER = 0.72  # the mean width of wide letters (m, w and all capital letters), divided by the font size
BOLD = 1.1  # the width of a bold text, divided by the width of the same text in regular letters
LINE = 1.25  # the distance from one line of text to the next, divided by the font size
PADDING = 4.0  # pixels between the edge of a box and its text
HEAD = 8.0  # pixels, the length of the head of an arrow
MARGIN = 6.0  # pixels around the shapes of a drawing
XMLNS = "http://www.w3.org/2000/svg"
SMALLEST_SCALE = 0.72  # The smallest scale of a drawing on a narrow screen. A reader scrolls to see the rest.


class DrawingError(Exception):
    """A drawing has a mistake. For example, a text is too long for its box, or a shape is outside of the canvas."""


class Point(NamedTuple):
    """A position on the canvas, in pixels from the upper left corner."""

    x: float
    y: float


class Box(NamedTuple):
    """A rectangle on the canvas, and the points at which arrows can touch it."""

    x: float
    y: float
    width: float
    height: float

    @property
    def left(self) -> Point:
        return Point(self.x, self.y + self.height / 2)

    @property
    def right(self) -> Point:
        return Point(self.x + self.width, self.y + self.height / 2)

    @property
    def top(self) -> Point:
        return Point(self.x + self.width / 2, self.y)

    @property
    def bottom(self) -> Point:
        return Point(self.x + self.width / 2, self.y + self.height)


class Extent(NamedTuple):
    """The part of a canvas that a page shows, in pixels from the upper left corner of the canvas."""

    left: float
    top: float
    right: float
    bottom: float


class Drawing:
    """A picture of boxes, arrows and texts, which becomes one `<svg>` element.

    `width` and `height` are the size of the canvas in pixels. A page shows only the part of the canvas with shapes
    or texts.

    `alternative` is the text alternative: a description for readers who cannot see the drawing.
    """

    def __init__(self, width: float, height: float, alternative: str) -> None:
        self.width, self.height = width, height
        self.alternative = alternative
        self._parts: list[str] = []
        self._points: list[Point] = []  # corners of all shapes

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *lines: str,
        tone: Tone = "plain",
        dashed: bool = False,
        size: float | None = None,
    ) -> Box:
        """Draw a rectangle with lines of text in the middle of the rectangle. Return the rectangle.

        `size` is the size of the text in pixels. If `size` is None, the text has the usual size, or a smaller size if
        the height of the box is too small for all lines. Raises DrawingError if a line is wider than the box, or if the
        box is not on the canvas.
        """
        if size is None:
            size = TEXT_SIZE if height > TEXT_SIZE * LINE * len(lines) else TEXT_SIZE - 2
        for line in lines:
            if width_of(line, size) > width - PADDING:
                raise DrawingError(f"{line!r} is too wide for a box of {width:g} pixels")
        self._check(Point(x, y), Point(x + width, y + height))
        look = _look("shape", tone, dashed=dashed)
        self._parts.append(f'<rect {look} x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4"/>')
        box = Box(x, y, width, height)
        first = y + height / 2 - (len(lines) - 1) * size * LINE / 2
        for number, line in enumerate(lines):
            self.text(box.top.x, first + number * size * LINE + size * 0.35, line, size=size)
        return box

    def cells(
        self,
        x: float,
        y: float,
        labels: Sequence[object],
        tones: Sequence[Tone] | Tone = "amber",
        *,
        width: float = 36,
        height: float = 34,
        dashed: bool = False,
    ) -> list[Box]:
        """Draw a row of boxes of equal size, for example one box for each record of a log. Return the boxes."""
        of_each = [tones] * len(labels) if isinstance(tones, str) else tones
        return [
            self.box(x + number * width, y, width, height, str(label), tone=tone, dashed=dashed)
            for number, (label, tone) in enumerate(zip(labels, of_each, strict=True))
        ]

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        anchor: Anchor = "middle",
        size: float = TEXT_SIZE,
        tone: Tone = "plain",
        strong: bool = False,
    ) -> None:
        """Write one line of text. Raises DrawingError if the text leaves the canvas.

        `y` is the y coordinate of the baseline, the line on which letters such as a and b stand.
        """
        wide = width_of(words, size) * (BOLD if strong else 1)
        left = {"start": x, "middle": x - wide / 2, "end": x - wide}[anchor]
        self._check(Point(left, y - size * 0.8), Point(left + wide, y))
        self._points.append(Point(left, y + size * 0.25))  # letters such as g are partly below the baseline
        look = ' font-weight="bold"' if strong else ""
        if tone != "plain":
            look += f' class="tone-{tone}" fill="{ON_LIGHT[tone][0]}"'
        place = f'x="{x:g}" y="{y:g}" font-size="{size:g}" text-anchor="{anchor}"'
        self._parts.append(f"<text {place}{look}>{escape(words)}</text>")

    def line(self, *points: tuple[float, float], tone: Tone = "plain", dashed: bool = False) -> None:
        """Draw a line through two or more points. Raises DrawingError if the line leaves the canvas."""
        corners = [Point(*point) for point in points]
        self._check(*corners)
        path = " ".join(f"{corner.x:g},{corner.y:g}" for corner in corners)
        self._parts.append(f'<polyline {_look("line", tone, dashed=dashed)} points="{path}"/>')

    def arrow(self, *points: tuple[float, float], tone: Tone = "plain", dashed: bool = False) -> None:
        """Draw a line through two or more points, with an arrowhead at the last point."""
        *_, before, end = [Point(*point) for point in points]
        length = ((end.x - before.x) ** 2 + (end.y - before.y) ** 2) ** 0.5
        if not length:
            raise DrawingError(f"an arrow at {end} has no direction")
        along = Point((end.x - before.x) / length * HEAD, (end.y - before.y) / length * HEAD)
        base = Point(end.x - along.x, end.y - along.y)
        self.line(*points[:-1], base, tone=tone, dashed=dashed)
        self._points.append(end)
        sides = [(base.x - along.y / 2, base.y + along.x / 2), (base.x + along.y / 2, base.y - along.x / 2)]
        path = " ".join(f"{x:g},{y:g}" for x, y in (end, *sides))
        self._parts.append(f'<polygon {_look("head", tone)} points="{path}"/>')

    def cross(self, x: float, y: float, size: float = 7) -> None:
        """Draw a red cross that means "lost" or "broken". The center of the cross is the point (`x`, `y`)."""
        self.line((x - size, y - size), (x + size, y + size), tone="red")
        self.line((x - size, y + size), (x + size, y - size), tone="red")

    @property
    def extent(self) -> Extent:
        """The part of the canvas that contains all shapes and a small margin around them."""
        xs, ys = [point.x for point in self._points], [point.y for point in self._points]
        return Extent(min(xs) - MARGIN, min(ys) - MARGIN, max(xs) + MARGIN, max(ys) + MARGIN)

    def svg(self, extent: Extent | None = None) -> str:
        """Return the picture as one `<svg>` element, which a page can contain.

        `extent` is the part of the canvas that the element shows. By default, this part contains all shapes.
        """
        left, top, right, bottom = extent or self.extent
        wide = right - left
        style = f"max-width:{wide:g}px;--least-width:{wide * SMALLEST_SCALE:g}px"
        start = f'<svg xmlns="{XMLNS}" class="drawing" viewBox="{left:g} {top:g} {wide:g} {bottom - top:g}"'
        label = f'font-family="sans-serif" role="img" aria-label="{escape(self.alternative)}"'
        return f'{start} style="{style}" {label}>{"".join(self._parts)}</svg>'

    def _check(self, *points: Point) -> None:
        self._points += points
        for x, y in points:
            if not (0 <= x <= self.width and 0 <= y <= self.height):
                raise DrawingError(f"({x:g}, {y:g}) is not on the canvas of {self.width:g} by {self.height:g}")


def _look(kind: Literal["shape", "line", "head"], tone: Tone, *, dashed: bool = False) -> str:
    """Return the attributes that determine the colors of an SVG element.

    On the website, the style sheet reads the kind and the tone of the element from the attribute `class`, and
    chooses the colors. In a book for an e-reader, the attributes `fill` and `stroke` contain the colors.
    """
    edge, area = ON_LIGHT[tone]
    look = f'class="{kind} tone-{tone}{" dashed" if dashed else ""}"'
    if kind == "head":
        return f'{look} fill="{edge}"'
    fill = area if kind == "shape" else "none"
    return f'{look} fill="{fill}" stroke="{edge}" stroke-width="1.5"' + (' stroke-dasharray="5 4"' if dashed else "")


def width_of(words: str, size: float = TEXT_SIZE) -> float:
    """Return the estimated width of a line of text, in pixels."""
    wide_letters = sum(letter.isupper() or letter in "mw" for letter in words)
    return (len(words) * LETTER + wide_letters * (WIDE_LETTER - LETTER)) * size


def figure(drawing: Drawing, *caption: nodes.Node, extent: Extent | None = None) -> nodes.figure:
    """Return the node that shows a drawing on a page. If the drawing has a caption, the node contains the caption.

    `extent` is the part of the canvas that the page shows. By default, this part contains all shapes.
    """
    node = nodes.figure("", nodes.raw("", drawing.svg(extent), format="html"), classes=["drawing"])
    if caption:
        node += nodes.caption("", "", *caption)
    return node


def load(path: Path, name: str) -> Callable[[], Any]:
    """Return the function `name` of a Python file. Raises DrawingError if the file or the function does not exist."""
    spec = importlib.util.spec_from_file_location(f"drawing_{path.stem}", path)
    if spec is None or spec.loader is None or not path.exists():
        raise DrawingError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[[], Any] | None = getattr(module, name, None)
    if found is None:
        raise DrawingError(f"{path.name} has no function {name!r}")
    return found


class FunctionDirective(SphinxDirective):
    """A directive that calls the function named in the directive's argument, such as `log.py:append`."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {}

    def call(self) -> Any:
        """Call the function in the directive's argument, and return its result.

        The argument contains the path of a Python file and the name of a function, for example
        `drawings/log.py:append`. If this file or the file `drawing.py` changes, Sphinx builds the page again.
        """
        place, _, name = self.arguments[0].partition(":")
        relative, path = self.env.relfn2path(place)
        for dependency in (relative, __file__):
            self.env.note_dependency(dependency)
        return load(Path(path), name)()


class DrawingDirective(FunctionDirective):
    """The directive `drawing`, which calls a function and shows the `Drawing` that it returns."""

    def run(self) -> list[nodes.Node]:
        try:
            drawing = self.call()
        except DrawingError as error:
            raise self.error(f"{self.arguments[0]}: {error}") from error
        words = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, words)
        return [figure(drawing, *(child for paragraph in words.children for child in paragraph.children))]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("drawing", DrawingDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
