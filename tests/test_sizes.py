"""Files and functions are short enough to read: a file has at most 400 lines, and a function at most 40.

The size of a function does not include its docstring, because a docstring is not executed. The tests check the folders
in FOLDERS, which do not include `docs`.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import hmb

ROOT = Path(hmb.__file__).parents[1]
FOLDERS = ("hmb", "cli", "bench", "labs", "tests")
MAX_LINES_OF_FILE, MAX_LINES_OF_FUNCTION = 400, 40


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def functions(path: Path) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)]


def size(function: ast.FunctionDef) -> int:
    """Return the number of lines from `def` to the end of the function, without the lines of the docstring."""
    lines = range(function.lineno, (function.end_lineno or 0) + 1)
    first = function.body[0]
    is_docstring = ast.get_docstring(function) is not None
    return len(lines) - (len(range(first.lineno, (first.end_lineno or 0) + 1)) if is_docstring else 0)


def test_the_size_of_a_function_leaves_out_its_docstring() -> None:
    text = 'def f(\n    x: int,\n) -> int:\n    """Return x.\n\n    Twice.\n    """\n    return x\n'
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    assert size(function) == 4


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_file_has_at_most_400_lines(folder: str) -> None:
    lines = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in files(folder)}
    assert len(lines) > 10
    assert {path: count for path, count in lines.items() if count > MAX_LINES_OF_FILE} == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_function_has_at_most_40_lines(folder: str) -> None:
    sizes = {
        f"{path.relative_to(ROOT)}: {function.name}": size(function)
        for path in files(folder)
        for function in functions(path)
    }
    assert {name: count for name, count in sizes.items() if count > MAX_LINES_OF_FUNCTION} == {}
