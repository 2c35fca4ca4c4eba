"""Tests of the labs' notebooks in Jupyter's format. `make docs` runs the notebooks, but these tests do not."""

from __future__ import annotations

import ast
import json
import re

import pytest

from hmb.cli.lab.catalog import labs
from hmb.cli.lab.jupyter import notebook

NOTEBOOKS = {f"{lab.number}-{name}": text for lab in labs() for name, text in lab.further_notebooks.items()}
NOTEBOOKS |= {f"{lab.number}": lab.text for lab in labs()}


def cells(text: str, kind: str) -> list[str]:
    made = json.loads(json.dumps(notebook(text)))
    return ["".join(cell["source"]) for cell in made["cells"] if cell["cell_type"] == kind]


def test_three_labs_have_a_notebook_that_needs_spark() -> None:
    assert [name for name in NOTEBOOKS if "-" in name] == ["3-events", "6-batches", "15-benchmarks"]


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
