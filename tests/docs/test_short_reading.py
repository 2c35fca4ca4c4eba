"""Tests of the short reading, which is a list of files for a first look at HMB's code.

The docstring of `hmb`, README.md and the documentation contain the list of the short reading. The list has at most
fifteen files. Together, these files have at most 3,000 lines, so that a student can read them in one evening.
"""

from __future__ import annotations

import re

import hmb
from tests.docs.conftest import EXTENSIONS

ROOT = EXTENSIONS.parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "tour" / "index.md").read_text(encoding="utf-8")
MAX_FILES, MAX_LINES = 15, 3_000
IN_README = re.compile(r"^(\d+)\. \[([\w/]+\.py)\]\(hmb/\2\) (.+)$", re.MULTILINE)
IN_DOCSTRING = re.compile(r"^ ?(\d+)\. `([\w/]+\.py)` ([^`\n]+)$", re.MULTILINE)
PART = re.compile(r"^```{essay} hmb\n:start-at: (The short reading.*)\n:end-before: (.+)\n```$", re.MULTILINE)


def part_on_the_page() -> str:
    """Return the part of the docstring that the documentation includes."""
    (part,) = PART.finditer(PAGE)
    docstring = hmb.__doc__ or ""
    begin = docstring.index(part[1])
    return docstring[begin : docstring.index(part[2], begin)]


def short_reading() -> list[tuple[str, str, str]]:
    """Return the list of files in the docstring of `hmb` as `[(number, file, subject)]`."""
    return IN_DOCSTRING.findall(part_on_the_page())


def test_the_short_reading_has_at_most_fifteen_files_in_order() -> None:
    numbers = [int(number) for number, _, _ in short_reading()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert 10 <= len(numbers) <= MAX_FILES


def test_the_short_reading_has_at_most_3000_lines() -> None:
    lines = {file: len((ROOT / "hmb" / file).read_text().splitlines()) for _, file, _ in short_reading()}
    assert sum(lines.values()) <= MAX_LINES, lines


def test_readme_repeats_the_short_reading() -> None:
    assert IN_README.findall(README) == short_reading()


def test_the_files_that_come_next_exist() -> None:
    """After the short reading, the docstring of `hmb` names nine more files. These nine files exist.

    For example, the docstring names `schema.py` in a sentence that begins with "Under `protocol/`". So the file
    `hmb/protocol/schema.py` must exist.
    """
    _, _, after = part_on_the_page().partition("Nine more files")
    folders = r"Under `([\w/]+)/`,(.*?)(?=Under `|After the core)"
    found = [
        f"{folder}/{file}"
        for folder, text in re.findall(folders, after.replace("\n", " "))
        for file in re.findall(r"`([\w/]+\.py)`", text)
    ]
    assert len(found) == 9
    assert [file for file in found if not (ROOT / "hmb" / file).exists()] == []
