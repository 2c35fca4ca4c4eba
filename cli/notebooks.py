"""`hmb notebooks`: the documentation's notebooks as files for a Jupyter of one's own.

They are written as text (MyST Markdown), which can be read and compared: prose, and fences whose word is
`{code-cell}`.  Jupyter wants JSON, and Jupyter's format for a cell is a list of lines and its kind (nbformat 4.5).
"""

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import click

from .shared.common import CliError, NewPath

CODE = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FRONT_MATTER = re.compile(r"\A---\n.*?^---\n", re.MULTILINE | re.DOTALL)
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


@click.command()
@click.argument("directory", type=NewPath(path_type=Path), default="hmb-notebooks")
@click.option("--force", is_flag=True, help="Write over notebooks that are there already.")
def command(directory: Path, force: bool) -> None:
    """Copy the documentation's notebooks to DIRECTORY (hmb-notebooks), for Jupyter.

    They read topics with Spark: pip install 'hmb[spark]' jupyterlab matplotlib
    """
    notebooks = dict(sources())
    there = [name for name in notebooks if (directory / f"{name}.ipynb").exists()]
    if there and not force:
        raise CliError(f"{directory / there[0]}.ipynb is there already; another directory, or --force to write over it")
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in notebooks.items():
        path = directory / f"{name}.ipynb"
        path.write_text(json.dumps(notebook(text), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        click.echo(path)
    click.echo(f"to look at them: jupyter lab {directory}", err=True)


def sources() -> Iterator[tuple[str, str]]:
    """Each notebook's name and text."""
    for source in sorted(files("hmb.notebooks").iterdir(), key=lambda each: each.name):
        if source.name.endswith(".md") and FRONT_MATTER.match(text := source.read_text(encoding="utf-8")):
            yield source.name.removesuffix(".md"), text


def notebook(text: str) -> dict[str, object]:
    """A notebook in Jupyter's format, from one in MyST's."""
    parts = CODE.split(FRONT_MATTER.sub("", text))  # prose and code in turns
    kinds = [("code" if number % 2 else "markdown", part.strip("\n")) for number, part in enumerate(parts)]
    cells = [_cell(kind, number, part) for number, (kind, part) in enumerate(kinds) if part]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": KERNEL}, "cells": cells}


def _cell(kind: str, number: int, text: str) -> dict[str, object]:
    cell: dict[str, object] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
    cell["source"] = text.splitlines(keepends=True)
    return cell | {"execution_count": None, "outputs": []} if kind == "code" else cell
