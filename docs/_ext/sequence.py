"""Draws sequence diagrams, which show the messages that several participants send to each other.

For example, a producer sends one batch, and the broker responds:
    sequence = Sequence(Lane("producer", "blue"), Lane("broker", "amber"))
    sequence.message("producer", "broker", "Produce")
    sequence.note("broker", "appends the batch")
    sequence.message("broker", "producer", "offset 7", dashed=True)
    picture = sequence.drawing("A producer sends one batch.")

Each participant has a *lane*: a box with its name, and a vertical line below the box. Time runs from top to bottom, and
each message or note has a row of its own. A *wait* is a bar on the lane of a participant that waits. The bar begins at
one row and ends at a later row.

If a text crosses the vertical line of a participant, the drawing leaves a gap in this line, so that a reader can read
the text. The text alternative of the drawing lists all messages and notes in their order.
"""

from __future__ import annotations

from typing import NamedTuple

from drawing import Drawing, Tone, width_of

SMALL = 13.0  # pixels, the font size of the texts between the vertical lines
HEADER = 36.0  # pixels, the height of the boxes with the names
ROW = 34.0  # pixels between two rows
MARGIN = 8.0  # pixels between the edge of the canvas and the shapes
BAR = 9.0  # pixels, the width of a bar, which shows how long a participant waits
NOTE = 24.0  # pixels, the height of the box around a note
CLEARANCE = 4.0  # pixels between a text and a vertical line


class Lane(NamedTuple):
    """One participant of a sequence: its name, and the color (the tone) of its box."""

    name: str
    tone: Tone


class Row(NamedTuple):
    """A row with a message from participant `source` to participant `target`, or with a note.

    The fields `source` and `target` contain the numbers of participants. In a note, the two numbers are equal.
    """

    source: int
    target: int
    text: str
    tone: Tone
    dashed: bool


class Wait(NamedTuple):
    """A bar that shows how long one participant of a drawing waits.

    The bar is on lane number `lane`. It begins at row number `first` and ends at row number `last`. The lanes are
    numbered from 0 at the left, and the rows are numbered from 0 at the top.
    """

    lane: int
    first: int
    last: int


class Sequence:
    """A drawing with a lane for each participant, and a row for each message or note.

    `gap` is the distance in pixels between two lanes.
    """

    def __init__(self, *lanes: Lane, gap: float = 160) -> None:
        self._lanes, self._gap = lanes, gap
        self._numbers = {lane.name: number for number, lane in enumerate(lanes)}
        self._rows: list[Row] = []
        self._waits: list[Wait] = []
        self._open: dict[int, int] = {}  # a waiting participant's number -> the number of the row where the wait began

    def message(self, source: str, target: str, text: str, *, tone: Tone = "plain", dashed: bool = False) -> None:
        """Add a message. The drawing shows it as an arrow from participant `source` to participant `target`.

        If `dashed` is true, the arrow has a dashed line. The caller sets `dashed` to true for a response.
        """
        self._rows.append(Row(self._numbers[source], self._numbers[target], text, tone, dashed))

    def note(self, lane: str, text: str, *, tone: Tone | None = None) -> None:
        """Add a box with `text` for the participant named `lane`.

        Without `tone`, the box has this participant's color.
        """
        number = self._numbers[lane]
        self._rows.append(Row(number, number, text, tone or self._lanes[number].tone, False))

    def begin_wait(self, lane: str) -> None:
        """Begin the bar that shows how long the participant named `lane` waits.

        The bar begins at the newest message or note. If the participant already waits, do nothing.
        """
        self._open.setdefault(self._numbers[lane], len(self._rows) - 1)

    def end_wait(self, lane: str) -> None:
        """End the bar that shows how long the participant named `lane` waits.

        The bar ends at the newest message or note. If the participant does not wait, do nothing.
        """
        number = self._numbers[lane]
        if number in self._open:
            self._waits.append(Wait(number, self._open.pop(number), len(self._rows) - 1))

    def drawing(self, about: str) -> Drawing:
        """Return the picture. Raises DrawingError if a text does not fit into the picture.

        The string `about` becomes the first sentence of the text alternative: a description for readers who cannot see
        the picture.
        """
        box = self._gap - 2 * MARGIN
        width = 2 * MARGIN + box + self._gap * (len(self._lanes) - 1)
        height = HEADER + MARGIN * 2 + ROW * (len(self._rows) + 0.5)
        picture = Drawing(width, height, f"{about} {self._in_words()}")
        xs = [MARGIN + box / 2 + self._gap * number for number in range(len(self._lanes))]
        for number, x in enumerate(xs):
            self._draw_line(picture, number, x, xs, height - MARGIN)
        for lane, x in zip(self._lanes, xs, strict=True):
            picture.box(x - box / 2, MARGIN, box, HEADER, lane.name, tone=lane.tone)
        for wait in self._waits:
            first, last = _y(wait.first), _y(wait.last)
            picture.box(xs[wait.lane] - BAR / 2, first, BAR, max(last - first, 1), tone="violet")
        for number, row in enumerate(self._rows):
            self._draw_row(picture, row, _y(number), xs)
        return picture

    def _in_words(self) -> str:
        names = [lane.name for lane in self._lanes]
        sentences = (
            f"{names[row.source]}: {row.text}."
            if row.source == row.target
            else f"{names[row.source]} to {names[row.target]}: {row.text}."
            for row in self._rows
        )
        return " ".join(sentences)

    def _span(self, row: Row, xs: list[float]) -> tuple[float, float]:
        """Return the x coordinates of the left end and the right end of a row's text.

        Usually, the text is above the middle of the arrow. If the arrow crosses the vertical lines of other
        participants, one of these lines could run through the text. A short text is therefore placed between the
        sender's line and the next line. A text that would leave the canvas is moved to the left or to the right.
        """
        wide = width_of(row.text, SMALL) + (2 * MARGIN if row.source == row.target else 0)
        middle = (xs[row.source] + xs[row.target]) / 2
        if abs(row.target - row.source) > 1 and wide < self._gap - 2 * BAR:
            middle = xs[row.source] + self._gap / 2 * (1 if row.target > row.source else -1)
        most = xs[-1] + self._gap / 2 - MARGIN
        left = min(max(middle - wide / 2, MARGIN), most - wide)
        return left, left + wide

    def _draw_line(self, picture: Drawing, number: int, x: float, xs: list[float], bottom: float) -> None:
        """Draw a participant's vertical line. The line has a gap wherever a text crosses it."""
        start = MARGIN + HEADER
        for index, row in enumerate(self._rows):
            left, right = self._span(row, xs)
            is_note = row.source == row.target
            if left - CLEARANCE <= x <= right + CLEARANCE and (is_note or number not in (row.source, row.target)):
                above = _y(index) - (NOTE / 2 if is_note else SMALL + CLEARANCE)
                if above > start:
                    picture.line((x, start), (x, above), tone="gray")
                start = _y(index) + (NOTE / 2 if is_note else -2)
        picture.line((x, start), (x, bottom), tone="gray")

    def _draw_row(self, picture: Drawing, row: Row, y: float, xs: list[float]) -> None:
        left, right = self._span(row, xs)
        if row.source == row.target:
            picture.box(left, y - NOTE / 2, right - left, NOTE, tone=row.tone)
            picture.text((left + right) / 2, y + SMALL * 0.35, row.text, size=SMALL)
            return
        direction = 1 if row.target > row.source else -1
        ends = [(xs[lane] + direction * side * BAR / 2, y) for lane, side in ((row.source, 1), (row.target, -1))]
        picture.arrow(*ends, tone=row.tone, dashed=row.dashed)
        picture.text((left + right) / 2, y - 5, row.text, size=SMALL)


def _y(row: int) -> float:
    return MARGIN + HEADER + ROW * (row + 0.9)
