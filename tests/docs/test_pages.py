"""Tests that the documentation has a page for each command, and that pages include only functions that exist.

Building the documentation with Sphinx finds the same errors as these tests, but takes longer.
"""

import ast
import re
from pathlib import Path

import pytest

from hmb.cli.main import COMMANDS

DOCS = Path(__file__).parents[2] / "docs"
PAGES = DOCS / "commands"
INCLUDE = re.compile(r"```{literalinclude} (\S+)\n:language: python\n:pyobject: (\S+)\n(?::dedent:\n)?```")
ESSAY = re.compile(r"```{(?:essay|states|meanings)} ([\w.]+)")
ESSAYS = sorted({name for page in DOCS.rglob("*.md") for name in ESSAY.findall(page.read_text())})
INCLUDED = [(page, *found) for page in DOCS.rglob("*.md") for found in INCLUDE.findall(page.read_text())]


def test_each_command_has_a_page() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == {*COMMANDS, "index"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_runs_its_command_and_lists_its_options(name: str) -> None:
    text = (PAGES / f"{name}.md").read_text()
    assert f".. click:: hmb.cli.{COMMANDS[name][0]}:command\n   :prog: hmb {name}\n" in text
    assert "```{session}" in text
    assert f"\n$ hmb {name} " in text or f"\n$ hmb {name}\n" in text or f"| hmb {name} " in text
    assert f"\n{name}\n" in (PAGES / "index.md").read_text()


@pytest.mark.parametrize(("page", "path", "name"), INCLUDED, ids=[name for _, _, name in INCLUDED])
def test_an_included_function_exists(page: Path, path: str, name: str) -> None:
    node: ast.AST = ast.parse((page.parent / path).read_text())
    for part in name.split("."):
        inner = {
            each.name: each for each in ast.iter_child_nodes(node) if isinstance(each, ast.ClassDef | ast.FunctionDef)
        }
        assert part in inner, f"{page.name} includes {name} of {path}, which does not exist: was it renamed?"
        node = inner[part]


@pytest.mark.parametrize("module", ESSAYS)
def test_the_module_of_an_essay_exists_and_has_a_docstring(module: str) -> None:
    path = (DOCS.parent / module.replace(".", "/")).with_suffix(".py")
    found = path if path.exists() else path.with_suffix("") / "__init__.py"
    assert ast.get_docstring(ast.parse(found.read_text())), f"a page shows the essay of {module}, which has no text"


def test_the_tours_include_many_functions() -> None:
    assert len(INCLUDED) > 15
