"""Draws the fields of a file or a message. Each row shows the position, the bytes, the name and the value of one field.

For example, the drawing of a batch begins with these two rows:
       0  00 00 00 00 00 00 00 00    base_offset = 0
       8  00 00 00 55                batch_length = 85

The module `hmb.records.annotate` computes the position, the name and the value of each field. The commands `hmb decode`
and `hmb dump-log --hex` use `hmb.records.annotate`, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from drawing import Box, Drawing, Tone

from hmb.protocol.annotate import Line, meaning

CELL, HIGH = 25.0, 24.0  # pixels: the width and the height of the box of one byte
ROW = 28.0  # pixels between the tops of two rows
# The x coordinates (pixels) of a row's columns: the right edge of the position column, and the left edges of the
# columns for the bytes and for the name.
POSITION, BYTES, NAME = 34.0, 42.0, 250.0
MAX_BYTES = 8  # the maximum number of bytes in one row; a longer field continues in the next row
LONGEST = 33  # the maximum number of characters in a text with a field's name and value: `batch_length = 85`


def draw_fields(drawing: Drawing, lines: Iterable[Line], top: float, tone_of: Callable[[str], Tone]) -> list[Box]:
    """Draw fields, one below the other. Return, for each field, the box that contains its first byte.

    The drawing begins at the height `top`. Each field begins in a new row. If a field has more than MAX_BYTES
    bytes, it continues in the next rows. The function `tone_of` receives the name of a field, and returns the color
    of its bytes.
    """
    boxes = []
    y = top
    for line in lines:
        drawing.text(POSITION, y + 17, str(line.offset), anchor="end", size=13)
        for start in range(0, len(line.data), MAX_BYTES):
            part = line.data[start : start + MAX_BYTES]
            cells = drawing.cells(
                BYTES, y, [f"{byte:02x}" for byte in part], tone_of(line.path), width=CELL, height=HIGH
            )
            if not start:
                boxes.append(cells[0])
                drawing.text(NAME, y + 17, label_of(line), anchor="start", size=13)
            y += ROW
    return boxes


def rows_of(lines: Iterable[Line]) -> int:
    """Return the number of rows that `draw_fields` needs."""
    return sum(-(-len(line.data) // MAX_BYTES) for line in lines)


def label_of(line: Line) -> str:
    """Return the name and the value of a field as text, for example `batch_length = 85`.

    The text for an error code also contains the name of the error: `error_code = 2  CORRUPT_MESSAGE`.
    The text for an API key also contains the name of the API.

    If the text is too long for a row, the function leaves out the name of the error or of the API. If the text is
    still too long, the function returns only the name of the field.
    """
    name = line.path.partition("].")[2] or line.path  # without the number of the record
    text = f"{name} = {meaning(line.path, line.value)}"
    for shorter in (text, text.partition("  ")[0]):
        if len(shorter) <= LONGEST:
            return shorter
    return name
