"""README, the docstring of `hmb` and the documentation name the same files for the short reading.

The short reading has at most fifteen files with at most 3,000 lines, so that a reader can finish it in one evening.
"""

from __future__ import annotations

import re

import hmb
from tests.docs.conftest import EXTENSIONS

ROOT = EXTENSIONS.parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "tour" / "index.md").read_text(encoding="utf-8")
MOST_FILES, MOST_LINES = 15, 3_000
IN_README = re.compile(r"^(\d+)\. \[([\w/]+\.py)\]\(hmb/\2\) (.+)$", re.MULTILINE)
IN_PAGE = re.compile(r"^(\d+)\. `hmb/([\w/]+\.py)` (.+)$", re.MULTILINE)
IN_DOCSTRING = re.compile(r"^ ?(\d+)\. `([\w/]+\.py)` ([^`\n]+)$", re.MULTILINE)


def short_reading() -> list[tuple[str, str, str]]:
    """Return `[(number, file, subject)]` as README lists them."""
    return IN_README.findall(README)


def test_the_short_reading_has_at_most_fifteen_files_in_order() -> None:
    numbers = [int(number) for number, _, _ in short_reading()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert 10 <= len(numbers) <= MOST_FILES


def test_the_short_reading_has_at_most_3000_lines() -> None:
    lines = {file: len((ROOT / "hmb" / file).read_text().splitlines()) for _, file, _ in short_reading()}
    assert sum(lines.values()) <= MOST_LINES, lines


def test_the_three_lists_of_the_short_reading_agree() -> None:
    assert IN_PAGE.findall(PAGE) == short_reading()
    _, _, after = (hmb.__doc__ or "").partition("The short reading:")
    assert IN_DOCSTRING.findall(after.partition("The four tours")[0]) == short_reading()
