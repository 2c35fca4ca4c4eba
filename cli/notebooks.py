"""`hmb notebooks`: the notebooks of the documentation as files for Jupyter.

The documentation contains the notebooks as text (MyST Markdown), which people and `git diff` can read. Code is in
fences with the word `{code-cell}`, and everything else is prose. Jupyter reads JSON. In Jupyter's format (nbformat
4.5), a cell is a kind and a list of lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import click

from .shared.errors import CliError
from .shared.parameters import NewPath

CODE = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FRONT_MATTER = re.compile(r"\A---\n.*?^---\n", re.MULTILINE | re.DOTALL)
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


@click.command()
@click.argument("directory", type=NewPath(path_type=Path), default="hmb-notebooks")
@click.option("--force", is_flag=True, help="Overwrite existing notebooks.")
def command(directory: Path, force: bool) -> None:
    """Copy the notebooks of the documentation to DIRECTORY (hmb-notebooks), for Jupyter.

    The notebooks read topics with Spark: pip install 'hmb[spark]' jupyterlab matplotlib
    """
    notebooks = dict(sources())
    existing = [name for name in notebooks if (directory / f"{name}.ipynb").exists()]
    if existing and not force:
        raise CliError(
            f"{directory / existing[0]}.ipynb exists already; name another directory, or overwrite it with --force"
        )
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in notebooks.items():
        path = directory / f"{name}.ipynb"
        path.write_text(json.dumps(notebook(text), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        click.echo(path)
    click.echo(f"open them with: jupyter lab {directory}", err=True)


def sources() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each notebook."""
    for source in sorted(files("hmb.notebooks").iterdir(), key=lambda each: each.name):
        if source.name.endswith(".md") and FRONT_MATTER.match(text := source.read_text(encoding="utf-8")):
            yield source.name.removesuffix(".md"), text


def notebook(text: str) -> dict[str, object]:
    """Convert a notebook from MyST Markdown to Jupyter's format."""
    parts = CODE.split(FRONT_MATTER.sub("", text))  # Prose and code alternate in this list.
    kinds = [("code" if number % 2 else "markdown", part.strip("\n")) for number, part in enumerate(parts)]
    cells = [_cell(kind, number, part) for number, (kind, part) in enumerate(kinds) if part]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": KERNEL}, "cells": cells}


def _cell(kind: str, number: int, text: str) -> dict[str, object]:
    cell: dict[str, object] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
    cell["source"] = text.splitlines(keepends=True)
    return cell | {"execution_count": None, "outputs": []} if kind == "code" else cell
