"""Print rows as a table or as JSON.

A row is a dict whose keys are the names of the columns. `print_rows` prints the rows as a table for people, or with
`--json` as one JSON object per line. A table has no frame, and its lines are not wrapped. Its text is the same on a
terminal and in a pipe, so `awk '{print $3}'` prints its third column. These are two rows in both forms:
    partition  leader  log_start_offset            {"partition": 0, "leader": 0, "log_start_offset": 0}
            0       0                 0            {"partition": 1, "leader": null, "log_start_offset": null}
            1       -                 -
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import click

from hmb.printable import printable

ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")


def to_json(value: object) -> str:
    """Return a value as one line of JSON. UUIDs and paths become strings."""
    return ENCODER.encode(value)


def print_json(value: object) -> None:
    """Print a value as one line of JSON."""
    click.echo(to_json(value))


def print_result(fields: Mapping[str, object], text: str, as_json: bool) -> None:
    """Print what a command has changed. If `as_json` is true, print `fields` as JSON. Otherwise print `text`."""
    if as_json:
        print_json(fields)
    else:
        click.echo(text)


def print_rows(columns: Sequence[str], rows: Sequence[Mapping[str, object]], as_json: bool) -> None:
    """Print rows as JSON with all fields, or as a table with the given columns. Without rows, print nothing."""
    if as_json:
        for row in rows:
            print_json(row)
    elif rows:
        print_table(columns, ([row[column] for column in columns] for row in rows))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a header, which is bold on a terminal, and the rows. Columns of numbers are aligned to the right."""
    cells = [[_text(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    numbers = [_are_numbers(column) for column in zip(*cells, strict=True)] or [False] * len(columns)

    def line(row: Sequence[str]) -> str:
        aligned = zip(row, widths, numbers, strict=True)
        return "  ".join(cell.rjust(width) if number else cell.ljust(width) for cell, width, number in aligned).rstrip()

    click.secho(line(columns), bold=True)
    for row in cells:
        click.echo(line(row))


def plural(count: int, singular: str, plural: str | None = None) -> str:
    """Return a count with its noun: `1 partition`, `2 partitions`, `3 entries`."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def _text(cell: object) -> str:
    if isinstance(cell, list):
        cell = ",".join(map(str, cell))
    return "-" if cell is None or cell == "" else printable(str(cell))


def _are_numbers(column: Sequence[str]) -> bool:
    known = [text for text in column if text != "-"]
    return bool(known) and all(text.lstrip("+-").isdigit() for text in known)
