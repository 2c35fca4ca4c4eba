"""Finds every text of the project: docstrings, comments, messages, help texts, pages, and the prose of test data.

A text is a piece that a person reads as one unit: a paragraph of a module's docstring, a block of comment lines, or a
log message. A message that is an f-string keeps its placeholders, for example `{name}`.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
CODE = ("hmb", "cli", "bench", "labs", "pyspark_hmb", "docs/_ext", "tests")
PAGES = ("docs", "labs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench", "cli")
TEST_DATA = ("tests/golden", "tests/scripts", "tests/coordinator", "tests/storage", "tests/hailstorm")
KINDS = ("docstring", "comment", "trailing", "message", "help", "page", "prose", "test")
SECTION = re.compile(r"\n\s*\n")
DIRECTIVE_COMMENTS = re.compile(r"#\s*(type:|noqa|fmt:|pragma|mypy|ruff|!)")
HELP_KEYWORDS = {"help", "short_help", "epilog", "description", "doc"}
ERROR_NAMES = re.compile(
    "Error|Exception|Damage|Mistake|Refused|Unavailable|InvalidRecords|CloseConnection|BadParameter"
)


class Text(NamedTuple):
    """One text, and its position in the project."""

    kind: str  # one of KINDS
    path: Path  # relative to the root of the project
    line: int  # the line number, from 1
    words: str  # the content of the text
    code: str  # the line of code that follows the text, or ""

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


def all_texts(*places: str) -> Iterator[Text]:
    """Yield every text below `places` (folders or files, relative to the root). The default is the whole project."""
    for path in sorted({path for top in places or (*CODE, *PAGES) for path in _files(ROOT / top)}):
        relative = path.relative_to(ROOT)
        if path.suffix == ".py":
            yield from _texts_of_code(relative, path.read_text(encoding="utf-8"))
        elif path.suffix == ".md":
            yield from _texts_of_page(relative, path.read_text(encoding="utf-8"))
    for path in sorted({path for top in places or TEST_DATA for path in _files(ROOT / top) if path.suffix == ".txt"}):
        yield from _texts_of_test_data(path.relative_to(ROOT), path.read_text(encoding="utf-8", errors="replace"))


def _files(top: Path) -> Iterator[Path]:
    paths = [top] if top.is_file() else top.rglob("*")
    return (path for path in paths if path.is_file() and not {"_build", "__pycache__", "api"} & set(path.parts))


def _texts_of_code(path: Path, source: str) -> Iterator[Text]:
    tree, lines = ast.parse(source), source.splitlines()
    is_test = path.parts[0] == "tests"
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _docstring(path, node, lines, "test" if is_test else "docstring")
        elif isinstance(node, ast.Call) and not is_test:
            yield from _messages(path, node, lines)
    yield from _comments(path, source, lines)


def _docstring(
    path: Path, node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str], kind: str
) -> Iterator[Text]:
    text = ast.get_docstring(node)
    if not text:
        return
    if isinstance(node, ast.Module):
        for paragraph in SECTION.split(text):
            yield Text(kind, path, 1, paragraph, "(module)")
        return
    is_command = any("command" in ast.unparse(d) or "group" in ast.unparse(d) for d in node.decorator_list)
    yield Text("help" if is_command else kind, path, node.lineno, text, lines[node.lineno - 1].strip())


def _messages(path: Path, call: ast.Call, lines: list[str]) -> Iterator[Text]:
    name = ast.unparse(call.func)
    code = lines[call.lineno - 1].strip()
    for keyword in call.keywords:
        if keyword.arg in HELP_KEYWORDS and (words := _string(keyword.value)):
            yield Text("help", path, keyword.value.lineno, words, code)
    is_log = name.split(".")[0] in ("LOGGER", "logger") and call.args
    is_error = ERROR_NAMES.search(name.split(".")[-1]) and name.split(".")[-1][0].isupper()
    if is_log or is_error:
        for argument in call.args:
            if (words := _string(argument)) and len(words.split()) > 2:
                yield Text("message", path, argument.lineno, words, code)


def _string(node: ast.expr) -> str:
    """Return the words of a string or a format string, or "" for any other expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (_string(v) if isinstance(v, ast.Constant) else "{" + ast.unparse(v.value) + "}" for v in node.values)
        return "".join(parts)
    return ""


def _comments(path: Path, source: str, lines: list[str]) -> Iterator[Text]:
    block: list[str] = []
    start = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or DIRECTIVE_COMMENTS.match(token.string):
            continue
        line, column = token.start
        words = token.string.lstrip("# ").rstrip()
        if lines[line - 1][:column].strip():
            yield Text("trailing", path, line, words, lines[line - 1].strip())
            continue
        if not words:
            continue  # An empty comment line ends the block. The next comment line begins a new block.
        if block and line != start + len(block):
            yield Text("comment", path, start, " ".join(block), lines[start + len(block) - 1].strip())
            block = []
        start = start if block else line
        block.append(words)
    if block:
        code = lines[start + len(block) - 1].strip() if start + len(block) <= len(lines) else ""
        yield Text("comment", path, start, " ".join(block), code)


def _texts_of_page(path: Path, text: str) -> Iterator[Text]:
    without_code = re.sub(r"```.*?```", lambda found: "\n" * found[0].count("\n"), text, flags=re.S)
    line = 1
    for part in re.split(r"(\n\s*\n)", without_code):
        if part.strip() and not part.lstrip().startswith(("|", "#", ":::", "---", "(", "{", "<")):
            yield Text("page", path, line + len(part) - len(part.lstrip("\n")), part.strip(), "(page)")
        line += part.count("\n")


def _texts_of_test_data(path: Path, text: str) -> Iterator[Text]:
    """Yield each block of comment lines of a script, and each comment after a command."""
    block: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.startswith("# "):
            block.append(line[2:].strip())
            continue
        if len(" ".join(block).split()) > 2:
            yield Text("prose", path, number - len(block), " ".join(block), line.strip())
        block = []
        if len((words := line.partition("  # ")[2].strip()).split()) > 2:
            yield Text("prose", path, number, words, line.strip())
