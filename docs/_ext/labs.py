"""Writes a page for each notebook of a lab into `docs/labs`, before Sphinx reads the pages.

The text of a lab is a notebook: the file `labs/NN_name/lab.md`. The build of the pages runs this notebook. One cell of
the notebook measures the program that a student has written. During the build, this cell measures the lab's own
solution instead. The page does not show the code of the solution.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from hmb.cli.lab.catalog import labs
from hmb.labs import SOLUTIONS


def write_pages(app: Sphinx) -> None:
    """Write the pages that have changed, and remove the pages of notebooks that no longer exist."""
    os.environ[SOLUTIONS] = "1"  # The notebooks run in child processes, which inherit the variable.
    folder = Path(app.srcdir) / "labs"
    pages = {f"lab-{lab.number:02}.md": lab.page for lab in labs()}
    pages |= {f"lab-{lab.number:02}-{name}.md": text for lab in labs() for name, text in lab.further_notebooks.items()}
    for path in folder.glob("lab-*.md"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
