"""Convert the notebooks of the labs from MyST Markdown to Jupyter's format, or to a Python program.

The notebooks of a lab are stored as text in MyST Markdown. In this format, changes are easy to read in the
output of `git diff`. Code begins after a line with three backquotes and `{code-cell}`, and ends before a line
with three backquotes. Everything else is prose.

Jupyter itself reads notebooks as JSON (nbformat 4.5). In JSON, a notebook is a list of cells. Each cell has a
type (code or Markdown), and contains a list of lines.
"""

from __future__ import annotations

import json
import re

CODE = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FRONT_MATTER = re.compile(r"\A---\n.*?^---\n", re.MULTILINE | re.DOTALL)
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}

HEAD = """\
\"\"\"The programs of lab {number}, in the order of lab.md. Run them with: python lab.py\"\"\"

try:
    import matplotlib
except ModuleNotFoundError:
    raise SystemExit("the plots need matplotlib: pip install 'hmb[labs]'") from None

matplotlib.use("Agg")  # Plots are saved as files. No window opens.
"""
SAVE = """
figure.savefig("plot-{number}.png")
print("saved plot-{number}.png")
"""
PLOT = re.compile(r"^figure, ", re.MULTILINE)


def program(text: str, number: int) -> str:
    """Return the code of a notebook as one program, which saves the plots as plot-1.png, plot-2.png, and so on."""
    parts, plots = [HEAD.format(number=number)], 0
    for position, code in enumerate(CODE.findall(text), 1):
        parts.append(f"\n# Program {position}\n\n{code}")
        if PLOT.search(code):
            plots += 1
            parts.append(SAVE.format(number=plots))
    return "".join(parts)


def notebook_file(text: str) -> str:
    """Convert a notebook from MyST Markdown to the content of an `.ipynb` file."""
    return json.dumps(notebook(text), indent=1, ensure_ascii=False) + "\n"


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
