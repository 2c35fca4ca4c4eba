"""The directive `states` shows a picture of a state machine, drawn from the table that the code uses.

To show the states of a consumer group, a page contains these lines:
    ```{states} hmb.coordinator.classic.states:TRANSITIONS
    ```

The picture shows the states as boxes in a column, in the order in which an enum defines them. Each arrow shows a change
of state. The place of the arrow depends on its direction:
- An arrow to the next box below is a straight line between the two boxes.
- An arrow to any other box below is on the right side of the column.
- An arrow to a box above, or from a box to itself, is on the left side of the column.

If two arrows on the same side of the column would overlap, the directive draws them at different distances from the
boxes. Below the picture, a table shows each change of state, and the event that causes the change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from docutils import nodes
from drawing import Drawing, figure
from sphinx.application import Sphinx
from tables import TableDirective

from hmb.state_table import StateTable

WIDTH, HEIGHT, GAP = 190, 36, 40  # pixels: the width and the height of a box, and the gap between two boxes
MAX_WORDS = 2  # the greatest number of words in a label; a longer label does not fit into a box
LANE = 24  # pixels between two arrows on the same side
CLEARANCE = 9  # pixels between the middle of a number and a line
# The distances (pixels) from the middle of a box's side to the points at which arrows begin or end. A positive distance
# is below the middle, and a negative one is above it. On each side, all distances differ, so incoming and outgoing
# arrows never meet at one point.
BEGIN_RIGHT, END_RIGHT = 6, -6
BEGIN_LEFT, END_LEFT = 12, 3
BEGIN_LOOP, END_LOOP = -14, -4  # on the left side, for an arrow from a box to itself


class Arrow(NamedTuple):
    """An arrow of the picture, from an old state to a new state.

    The picture shows the states as boxes in a column. `before` and `after` are the positions of the two boxes in this
    column. `number` is the number that the picture shows beside the arrow.
    """

    number: int
    before: int
    after: int

    @property
    def length(self) -> int:
        return abs(self.after - self.before)

    @property
    def is_straight(self) -> bool:
        return self.after - self.before == 1


class Route(NamedTuple):
    """The path of an arrow beside a column of boxes.

    From the box of the old state, the arrow runs sideways to the x coordinate `x`. It then runs up or down, and
    finally sideways to the box of the new state.
    """

    arrow: Arrow
    x: float
    begin: float  # y coordinate
    end: float  # y coordinate


def picture(table: StateTable[Any, Any]) -> Drawing:
    """Draw the transitions of a state machine."""
    transitions = list(table)
    enum: Any = type(transitions[0].before)
    present = {state for each in transitions for state in (each.before, each.after)}
    states = [state for state in enum if state in present]
    arrows = [Arrow(n, states.index(t.before), states.index(t.after)) for n, t in enumerate(transitions, 1)]
    forward = _lanes(arrow for arrow in arrows if arrow.length and arrow.after > arrow.before and not arrow.is_straight)
    back = _lanes(arrow for arrow in arrows if arrow.after <= arrow.before)
    left = (len(back) + 1) * LANE
    width, height = left + WIDTH + (len(forward) + 1) * LANE, len(states) * (HEIGHT + GAP)
    drawing = Drawing(width, height, _in_words(transitions))
    for number, state in enumerate(states):
        drawing.box(left, _top(number), WIDTH, HEIGHT, label_of(state), tone="amber")
    for arrow in arrows:
        if arrow.is_straight:
            _straight(drawing, arrow, left + WIDTH / 2)
    for lanes, edge, direction in ((forward, left + WIDTH, 1), (back, left, -1)):
        routes = [
            _route(arrow, edge + direction * LANE * lane) for lane, several in enumerate(lanes, 1) for arrow in several
        ]
        for route in routes:
            _around(drawing, route, edge, routes)
    return drawing


def label_of(state: Any) -> str:
    """Return the text for the box that shows `state` in a drawing, for example "PrepareCommit".

    The function uses the attribute `label` of the state. If the state has no `label`, it uses the state's value.

    If this text has more than two words, it does not fit into the box. The function then returns the name of the
    enum member in plain words: "Client first" for `CLIENT_FIRST`.
    """
    label = str(getattr(state, "label", state.value))
    return state.name.replace("_", " ").capitalize() if len(label.split()) > MAX_WORDS else label


def _in_words(transitions: Sequence[Any]) -> str:
    steps = (f"step {n} from {label_of(t.before)} to {label_of(t.after)}" for n, t in enumerate(transitions, 1))
    return "A state machine: " + ", ".join(steps) + "."


def _lanes(arrows: Iterable[Arrow]) -> list[list[Arrow]]:
    """Return a list of lanes for the arrows on one side of the boxes.

    A lane is a list of arrows that have the same distance from the boxes. The arrows in one lane do not touch. The
    function places short arrows before long arrows, so the shortest arrows get the lanes nearest to the boxes.
    """
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


def _straight(drawing: Drawing, arrow: Arrow, x: float) -> None:
    start, end = _top(arrow.before) + HEIGHT, _top(arrow.after) - 1
    drawing.arrow((x, start), (x, end))
    drawing.text(x + 8, (start + end) / 2 + 5, str(arrow.number), anchor="start", size=13)


def _route(arrow: Arrow, x: float) -> Route:
    """Return the route of `arrow`. The vertical part of the route is at the x coordinate `x`."""
    begin, end = (BEGIN_RIGHT, END_RIGHT) if arrow.after > arrow.before else (BEGIN_LEFT, END_LEFT)
    if not arrow.length:
        begin, end = BEGIN_LOOP, END_LOOP
    first, last = (_top(state) + HEIGHT / 2 for state in (arrow.before, arrow.after))
    return Route(arrow, x, first + begin, last + end)


def _around(drawing: Drawing, route: Route, edge: float, routes: list[Route]) -> None:
    """Draw the arrow of a state change beside the boxes, with the number of the state change.

    The parameter `edge` is the x coordinate at which the arrow touches the boxes. The list `routes` contains all
    arrows on this side of the boxes.
    """
    arrow, x, begin, end = route
    drawing.arrow((edge, begin), (x, begin), (x, end), (edge, end))
    if arrow.length:
        drawing.text(x + 3, _height_of_number(route, edge, routes) + 4, str(arrow.number), anchor="start", size=12)
    else:
        drawing.text(x - 3, (begin + end) / 2 + 4, str(arrow.number), anchor="end", size=12)


def _height_of_number(route: Route, edge: float, routes: list[Route]) -> float:
    """Return the y coordinate of an arrow's number.

    The number is beside the vertical part of the arrow, as near to the middle as possible. The function chooses a
    place where no arrow crosses the number. If there is no such place, the number is in the middle.
    """
    low, high = sorted((route.begin, route.end))
    middle = (low + high) / 2
    beside = route.x + LANE / 2  # the approximate x coordinate of the number that the picture shows beside the arrow
    crossing = [other for other in routes if min(edge, other.x) < beside < max(edge, other.x)]
    lines = [y for other in crossing for y in (other.begin, other.end)]
    places = sorted(range(int(low) + CLEARANCE, int(high) - CLEARANCE), key=lambda y: abs(y - middle))
    return next((y for y in places if all(abs(y - line) >= CLEARANCE for line in lines)), middle)


class StatesDirective(TableDirective):
    """The directive `states`: shows a state machine as a picture, and as a table of state changes with their events."""

    def run(self) -> list[nodes.Node]:
        table, _ = self.table()
        rows = [["", "from", "event", "to"]]
        rows += [[str(n), label_of(t.before), t.event.value, label_of(t.after)] for n, t in enumerate(table, 1)]
        return [figure(picture(table)), _table(rows)]


def _table(rows: list[list[str]]) -> nodes.table:
    group = nodes.tgroup(cols=len(rows[0]))
    group += [nodes.colspec(colwidth=max(len(row[n]) for row in rows)) for n in range(len(rows[0]))]
    made = [nodes.row("", *[nodes.entry("", nodes.paragraph(text=cell)) for cell in row]) for row in rows]
    group += [nodes.thead("", made[0]), nodes.tbody("", *made[1:])]
    return nodes.table("", group, classes=["states"])


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("states", StatesDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
