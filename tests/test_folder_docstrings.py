"""Each folder of `hmb` has a docstring, and the modules that its list names exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import hmb

ROOT = Path(hmb.__file__).parent
FOLDERS = sorted({path.parent for path in ROOT.rglob("*.py")})
ITEM = re.compile(r"^(?:- |\d+\. )`([\w/]+(?:\.py)?)` ", re.MULTILINE)
FIXTURES = ("hmb_", "kafka_")  # The list of `hmb.testing` also contains the fixtures of the pytest plugin.


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT.parent)))
def test_a_folder_has_a_docstring_that_names_existing_modules(folder: Path) -> None:
    docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    assert docstring
    names = [name for name in ITEM.findall(docstring) if not name.startswith(FIXTURES)]
    missing = [name for name in names if not any((folder / f"{name}{end}").exists() for end in ("", ".py"))]
    assert missing == []
