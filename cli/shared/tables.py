"""Tables for people and for grep: one row a line, columns apart by spaces, `-` for what is not there.

No frames and no wrapping, on a terminal as in a pipe: what one sees is what `awk '{print $3}'` gets.
"""

from collections.abc import Iterable, Sequence

import click


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """The header, bold on a terminal, and the rows; columns of numbers are aligned at their right."""
    cells = [[_text(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    numbers = [_are_numbers(column) for column in zip(*cells, strict=True)] or [False] * len(columns)

    def line(row: Sequence[str]) -> str:
        aligned = zip(row, widths, numbers, strict=True)
        return "  ".join(cell.rjust(width) if number else cell.ljust(width) for cell, width, number in aligned).rstrip()

    click.secho(line(columns), bold=True)
    for row in cells:
        click.echo(line(row))


def plural(count: int, what: str) -> str:
    """`1 partition`, `2 partitions`"""
    return f"{count:,} {what}{'s' * (count != 1)}"


def _text(cell: object) -> str:
    return "-" if cell is None or cell == "" else str(cell)


def _are_numbers(column: Sequence[str]) -> bool:
    told = [text for text in column if text != "-"]
    return bool(told) and all(text.lstrip("+-").isdigit() for text in told)
