"""The directive `step-by-step` shows a process in steps. Each step has a drawing and a caption.

With the following lines in a page, the directive `step-by-step` draws how HMB finds an offset:
    ```{step-by-step} steps/index_lookup.py:steps
    A look-up of offset 66
    ```

The directive `step-by-step` has an argument of two parts: the path of a Python file, relative to the page, and
the name of a function in this file. The text below the argument is the title of the drawings.

Sphinx calls the function named in the directive `step-by-step`. This function runs HMB's own code, draws the result of
each step, and returns a list of `Step` objects.

A page contains all steps of a process, one below the other. A reader sees all of them on paper, in the EPUB, and in a
browser without JavaScript. In a browser with JavaScript, the script `_static/step-by-step.js` shows one step at a time,
and adds the buttons "back" and "next". When the steps have the keyboard focus, the left and the right arrow key work
like these buttons.

Write each step's caption so that it makes sense without the other captions. Each drawing has a text alternative: a
description for readers who cannot see the drawing.

All drawings of a process have the same size, so the rest of the page does not move when a reader goes to the next step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from docutils import nodes
from drawing import Drawing, DrawingError, Extent, FunctionDirective, figure
from sphinx.application import Sphinx


class Step(NamedTuple):
    """One step of a process: a drawing, and a caption of one to three sentences in Markdown."""

    caption: str
    drawing: Drawing


class StepByStep(FunctionDirective):
    """The directive `step-by-step`, which calls a function and shows the steps that it returns."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(__file__)
        try:
            steps = checked(self.call())
        except DrawingError as error:
            raise self.error(f"{self.arguments[0]}: {error}") from error
        shown = nodes.container(classes=["step-by-step"])
        if self.content:
            title = nodes.paragraph(classes=["step-by-step-title"])
            title += self._parsed("\n".join(self.content))
            shown += title
        extent = common_extent([step.drawing for step in steps])
        for number, step in enumerate(steps, 1):
            label = nodes.strong(text=f"Step {number} of {len(steps)}.")
            shown += figure(step.drawing, label, nodes.Text(" "), *self._parsed(step.caption), extent=extent)
        return [shown]

    def _parsed(self, text: str) -> list[nodes.Node]:
        """Return the nodes of one paragraph of Markdown."""
        return [child for paragraph in self.parse_text_to_nodes(text) for child in paragraph.children]


def checked(steps: list[Step]) -> list[Step]:
    """Return the steps. Raises DrawingError if only one step exists, or if the drawings differ in size."""
    sizes = sorted({f"{step.drawing.width:g} x {step.drawing.height:g}" for step in steps})
    if len(steps) < 2:
        raise DrawingError(f"a process has at least two steps, and this one has {len(steps)}")
    if len(sizes) > 1:
        raise DrawingError(f"the drawings have different sizes: {', '.join(sizes)}")
    return steps


def common_extent(drawings: list[Drawing]) -> Extent:
    """Return the part of the canvas that contains the shapes of all drawings."""
    lefts, tops, rights, bottoms = zip(*(drawing.extent for drawing in drawings), strict=True)
    return Extent(min(lefts), min(tops), max(rights), max(bottoms))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("step-by-step", StepByStep)
    app.add_js_file("step-by-step.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
