"""The directive `states`: a picture of a state machine, drawn from the table that the code follows.

    ```{states} hmb.coordinator.classic.states:TRANSITIONS
    ```

States stand in a column, in the order in which their enum has them.  Steps forward are drawn on the right, steps back
on the left, the longer the further out; the table below the picture says why each is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from tables import TableDirective

WIDTH, HEIGHT, GAP = 190, 36, 40  # of a box, between boxes
LANE = 24  # between arrows
MARKER = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z"/></marker></defs>'
)


class Arrow(NamedTuple):
    """One step, by the numbers of its states."""

    number: int
    before: int
    after: int

    @property
    def length(self) -> int:
        return abs(self.after - self.before)

    @property
    def is_straight(self) -> bool:
        return self.after - self.before == 1


def picture(transitions: Sequence[Any]) -> str:
    """An SVG of (before, after, because) with members of one enum."""
    states = list(type(transitions[0].before))
    arrows = [Arrow(n, states.index(t.before), states.index(t.after)) for n, t in enumerate(transitions, 1)]
    straight = [arrow for arrow in arrows if arrow.is_straight]
    forward = _lanes(arrow for arrow in arrows if arrow.length and arrow.after > arrow.before and not arrow.is_straight)
    back = _lanes(arrow for arrow in arrows if arrow.after <= arrow.before)
    left = (len(back) + 1) * LANE
    width, height = left + WIDTH + (len(forward) + 1) * LANE, len(states) * (HEIGHT + GAP)
    parts = [MARKER]
    for number, state in enumerate(states):
        parts.append(f'<rect x="{left}" y="{_top(number)}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>')
        middle, label = _top(number) + HEIGHT / 2 + 5, escape(label_of(state))
        parts.append(f'<text x="{left + WIDTH / 2}" y="{middle}" text-anchor="middle">{label}</text>')
    parts += [_straight(arrow, left + WIDTH / 2) for arrow in straight]
    for lanes, edge, direction in ((forward, left + WIDTH, 1), (back, left, -1)):
        for lane, several in enumerate(lanes, 1):
            parts += [_around(arrow, edge, direction, edge + direction * LANE * lane) for arrow in several]
    return f'<svg class="states" viewBox="0 0 {width} {height}" width="{width}" role="img">{"".join(parts)}</svg>'


def label_of(state: Any) -> str:
    """As Kafka names it."""
    return str(getattr(state, "label", state.value))


def _lanes(arrows: Iterable[Arrow]) -> list[list[Arrow]]:
    """The arrows of one side, the short ones near; in a lane none meets another."""
    lanes: list[list[Arrow]] = []
    for arrow in sorted(arrows, key=lambda each: each.length):
        for lane in lanes:
            if all(_are_apart(arrow, other) for other in lane):
                lane.append(arrow)
                break
        else:
            lanes.append([arrow])
    return lanes


def _are_apart(one: Arrow, other: Arrow) -> bool:
    (_, end_of_first), (second, _) = sorted(sorted((each.before, each.after)) for each in (one, other))
    return end_of_first < second


def _top(number: int) -> int:
    return number * (HEIGHT + GAP) + 4


def _straight(arrow: Arrow, x: float) -> str:
    start, end = _top(arrow.before) + HEIGHT, _top(arrow.after) - 1
    line = f'<path d="M{x} {start} V{end}" marker-end="url(#arrow)"/>'
    return line + f'<text x="{x + 8}" y="{(start + end) / 2 + 5}" font-size="13">{arrow.number}</text>'


def _around(arrow: Arrow, edge: int, direction: int, out: int) -> str:
    shift = 6 * (direction if arrow.length else -1)  # those that leave a box stand beside those that come to it
    start, end = (_top(state) + HEIGHT / 2 for state in (arrow.before, arrow.after))
    line = f'<path d="M{edge} {start + shift} H{out} V{end - shift} H{edge}" marker-end="url(#arrow)"/>'
    return line + f'<text x="{out + 3}" y="{(start + end) / 2 + 5}" font-size="12">{arrow.number}</text>'


class StatesDirective(TableDirective):
    """See the module."""

    def run(self) -> list[nodes.Node]:
        transitions, _ = self.table()
        rows = [["", "from", "to", "because"]]
        rows += [[str(n), label_of(t.before), label_of(t.after), t.because] for n, t in enumerate(transitions, 1)]
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
