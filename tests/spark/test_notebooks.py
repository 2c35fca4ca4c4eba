"""Tests of `hmb notebooks`, which copies the notebooks. The documentation's build tests that they run."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from hmb.cli.main import main
from hmb.cli.notebooks import notebook, sources

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = dict(sources())


def cells(text: str, kind: str) -> list[str]:
    made = json.loads(json.dumps(notebook(text)))
    return ["".join(cell["source"]) for cell in made["cells"] if cell["cell_type"] == kind]


def test_the_documentation_lists_all_notebooks() -> None:
    listed = (FOLDER / "index.md").read_text().partition("{toctree}")[2].split()
    assert NOTEBOOKS and set(NOTEBOOKS) <= set(listed)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_jupyter_can_show_a_notebook(name: str) -> None:
    prose, code = cells(NOTEBOOKS[name], "markdown"), cells(NOTEBOOKS[name], "code")
    assert prose[0].startswith("# ")
    assert not [text for text in prose if re.search(r"^(:::|```\{)|\{[a-z]+\}`", text, re.MULTILINE)], "MyST's own"
    for text in code:
        ast.parse(text)
    assert len(code) == NOTEBOOKS[name].count("\n```{code-cell}")


TEXT = """\
---
file_format: mystnb
---

# One

```{code-cell} python
a = '''
---
'''
```

```{code-cell}
b
```

Two.
"""


def test_cells_in_their_order() -> None:
    assert cells(TEXT, "markdown") == ["# One", "Two."]
    assert cells(TEXT, "code") == ["a = '''\n---\n'''", "b"]


def test_existing_notebooks_are_not_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    assert CliRunner().invoke(main, ["notebooks", str(folder)]).exit_code == 0
    assert {path.name for path in folder.iterdir()} == {f"{name}.ipynb" for name in NOTEBOOKS}
    mine = folder / "events.ipynb"
    mine.write_text("changed")
    refused = CliRunner().invoke(main, ["notebooks", str(folder)])
    assert (refused.exit_code, mine.read_text()) == (1, "changed")
    assert "--force" in refused.output
    assert CliRunner().invoke(main, ["notebooks", str(folder), "--force"]).exit_code == 0
    assert json.loads(mine.read_text())["nbformat"] == 4
