"""Tests of folder docstrings: each docstring names all modules of its folder, and each module that it lists exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import hmb

ROOT = Path(hmb.__file__).parents[1]
FOLDERS = sorted({path.parent for top in ("hmb", "cli", "bench") for path in (ROOT / top).rglob("__init__.py")})
ITEM = re.compile(r"^(?:- |\d+\. )`([\w/]+(?:\.py)?)` ", re.MULTILINE)
# In the docstring of `hmb.testing`, list items with these prefixes are not modules, but fixtures of the pytest plugin.
FIXTURES = ("hmb_", "kafka_")
# These folders have one module for each API of Kafka, with the name of the API. Their docstrings do not list all APIs.
ONE_FOR_EACH_API = ("hmb/broker/handlers", "hmb/protocol/messages")


def name_of(folder: Path) -> str:
    return folder.relative_to(ROOT).as_posix()


def docstring_of(folder: Path) -> str:
    return ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""


def contents_of(folder: Path) -> list[str]:
    """Return the names of the modules and packages in a folder."""
    modules = [path.stem for path in folder.glob("*.py") if path.stem != "__init__"]
    return sorted(modules + [path.parent.name for path in folder.glob("*/__init__.py")])


def is_named(name: str, docstring: str) -> bool:
    """Return whether a docstring names a module or package, in backquotes or at the start of a line of a list."""
    quoted = rf"`(?:[\w/.]+[/.])?{name}(?:\.py|/[\w/.]*)?`"
    item = rf"^ {{4}}{name}(?:\.py|/)? "
    return re.search(f"{quoted}|{item}", docstring, re.MULTILINE) is not None


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_a_folder_has_a_docstring_that_names_existing_modules(folder: Path) -> None:
    docstring = docstring_of(folder)
    assert docstring
    names = [name for name in ITEM.findall(docstring) if not name.startswith(FIXTURES)]
    missing = [name for name in names if not any((folder / f"{name}{end}").exists() for end in ("", ".py"))]
    assert missing == []


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_a_docstring_names_all_modules_of_its_folder(folder: Path) -> None:
    if name_of(folder) in ONE_FOR_EACH_API:
        pytest.skip("the folder has one module for each API, with the name of the API")
    docstring = docstring_of(folder)
    assert [name for name in contents_of(folder) if not is_named(name, docstring)] == []


def test_a_name_inside_a_sentence_does_not_name_a_module() -> None:
    assert not is_named("topics", "the topics of the broker")
    assert is_named("topics", "reads `topics/registry.py`")
    assert is_named("topics", "Read in this order:\n    topics    the registry")
