"""The directive `step-by-step` shows a process in steps. Each step has a drawing and a caption.

A page shows the steps that a function returns:
    ```{step-by-step} steps/index_lookup.py:steps
    A look-up of offset 8011
    ```

The argument of `step-by-step` names a Python file, relative to the page, and a function that returns a list of `Step`.
The text below the argument is the title. The build of the page calls the function. The function runs HMB's own code,
and makes a drawing of the state after each step.

A page contains all steps of a process, one below the other. Without JavaScript, on paper and in the EPUB, a reader sees
all steps. In a browser, the script `_static/step-by-step.js` shows only one step. The script adds the buttons "back"
and "next". When the steps have the focus, the keys "arrow left" and "arrow right" work like these buttons.

Each step's caption names its subject, so that a reader understands the caption without the other captions. Each step's
drawing has a text alternative (drawing.py). All drawings of a process have the same size, so that the page does not
jump.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from docutils import nodes
from drawing import Drawing, DrawingError, FunctionDirective, figure
from sphinx.application import Sphinx


class Step(NamedTuple):
    """One moment of a process: a caption of one to three sentences, in Markdown, and the drawing of the state."""

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
        for number, step in enumerate(steps, 1):
            label = nodes.strong(text=f"Step {number} of {len(steps)}.")
            shown += figure(step.drawing, label, nodes.Text(" "), *self._parsed(step.caption))
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


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("step-by-step", StepByStep)
    app.add_js_file("step-by-step.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
