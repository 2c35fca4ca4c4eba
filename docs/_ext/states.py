"""The directive `states`: a picture of a state machine, drawn from the table that the code follows.

    ```{states} hmb.coordinator.states:TRANSITIONS
    ```

States stand in a column, in the order in which their enum has them.  Steps forward are drawn on the right, steps back
on the left, the longer the further out; the table below the picture says why each is taken.
"""

from __future__ import annotations

from html import escape
from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

WIDTH, HEIGHT, GAP, LEFT = 190, 36, 44, 190  # of a box, between boxes, left of them
LANE = 26  # between arrows
MARKER = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z"/></marker></defs>'
)


def picture(transitions: Any) -> str:
    """An SVG of (before, after, because) with members of one enum."""
    states = list(type(transitions[0].before))
    top = {state: number * (HEIGHT + GAP) + 4 for number, state in enumerate(states)}
    parts = [MARKER]
    for state in states:
        parts.append(f'<rect x="{LEFT}" y="{top[state]}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>')
        middle = top[state] + HEIGHT / 2 + 5
        parts.append(f'<text x="{LEFT + WIDTH / 2}" y="{middle}" text-anchor="middle">{escape(state.value)}</text>')
    lanes = {1: 0, -1: 0}
    for number, step in sorted(enumerate(transitions, 1), key=lambda each: _length(states, each[1])):
        direction = 1 if states.index(step.after) > states.index(step.before) else -1
        if _length(states, step) == 1 and direction == 1:
            x = LEFT + WIDTH / 2
            start, end = top[step.before] + HEIGHT, top[step.after] - 1
            parts.append(f'<path d="M{x} {start} L{x} {end}" marker-end="url(#arrow)"/>')
            parts.append(f'<text x="{x + 8}" y="{(start + end) / 2 + 5}" font-size="13">{number}</text>')
            continue
        lanes[direction] += 1
        edge = LEFT + WIDTH if direction == 1 else LEFT
        out = edge + direction * LANE * lanes[direction]
        start, end = top[step.before] + HEIGHT / 2 + 6 * direction, top[step.after] + HEIGHT / 2 - 6 * direction
        parts.append(f'<path d="M{edge} {start} H{out} V{end} H{edge}" marker-end="url(#arrow)"/>')
        parts.append(f'<text x="{out + 4}" y="{(start + end) / 2 + 5}" font-size="13">{number}</text>')
    width, height = 2 * LEFT + WIDTH, len(states) * (HEIGHT + GAP)
    return f'<svg class="states" viewBox="0 0 {width} {height}" width="{width}" role="img">{"".join(parts)}</svg>'


def _length(states: list[Any], step: Any) -> int:
    return abs(states.index(step.after) - states.index(step.before))


class StatesDirective(SphinxDirective):
    """See the module."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module_name, _, name = self.arguments[0].partition(":")
        module = import_module(module_name)
        assert module.__file__ is not None
        self.env.note_dependency(module.__file__)
        transitions = getattr(module, name)
        rows = [["", "from", "to", "because"]]
        rows += [[str(n), t.before.value, t.after.value, t.because] for n, t in enumerate(transitions, 1)]
        return [nodes.raw("", picture(transitions), format="html"), _table(rows)]


def _table(rows: list[list[str]]) -> nodes.table:
    group = nodes.tgroup(cols=len(rows[0]))
    group += [nodes.colspec(colwidth=max(len(row[n]) for row in rows)) for n in range(len(rows[0]))]
    made = [nodes.row("", *[nodes.entry("", nodes.paragraph(text=cell)) for cell in row]) for row in rows]
    group += [nodes.thead("", made[0]), nodes.tbody("", *made[1:])]
    return nodes.table("", group)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("states", StatesDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
