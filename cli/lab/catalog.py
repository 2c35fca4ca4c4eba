"""Find the labs that are installed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

FOLDER_NAME = re.compile(r"(\d\d)_\w+")
HEADING = re.compile(r"^# (.+)$", re.MULTILINE)
OWN_PAGES = ("lab.md", "hints.md")  # the pages that every lab has
REQUIREMENT = re.compile(r"^def test_", re.MULTILINE)
HINT = re.compile(r"^## ", re.MULTILINE)


class UnknownLab(Exception):
    """No lab has the given number. The message lists the numbers of all labs."""


@dataclass(frozen=True)
class Lab:
    """One lab. `folder` contains the five files of the lab, and in some labs further notebooks."""

    number: int
    folder: Path

    @property
    def text(self) -> str:
        """The lab's notebook in MyST Markdown."""
        return (self.folder / "lab.md").read_text(encoding="utf-8")

    @property
    def further_notebooks(self) -> dict[str, str]:
        """The notebooks other than `lab.md`, as a dict: name -> text in MyST Markdown. These notebooks use Spark."""
        paths = sorted(self.folder.glob("*.md"))
        return {path.stem: path.read_text(encoding="utf-8") for path in paths if path.name not in OWN_PAGES}

    @property
    def title(self) -> str:
        """The first heading of the notebook."""
        heading = HEADING.search(self.text)
        return heading[1] if heading else self.folder.name

    @property
    def hints(self) -> list[str]:
        """The hints of the lab. The first hint is the most general, and the last hint is the most specific."""
        return [hint.strip() for hint in HINT.split((self.folder / "hints.md").read_text(encoding="utf-8"))[1:]]

    @property
    def requirement_count(self) -> int:
        """The number of requirements of the lab. Each requirement is a test in `check.py`."""
        return len(REQUIREMENT.findall((self.folder / "check.py").read_text(encoding="utf-8")))

    @property
    def starter(self) -> str:
        return (self.folder / "starter.py").read_text(encoding="utf-8")

    @property
    def solution(self) -> str:
        return (self.folder / "solution.py").read_text(encoding="utf-8")


def labs() -> list[Lab]:
    """Return all labs, sorted by number."""
    folder = Path(str(files("hmb.labs")))
    found = [(FOLDER_NAME.fullmatch(path.name), path) for path in sorted(folder.iterdir())]
    return [Lab(int(name[1]), path) for name, path in found if name and path.is_dir()]


def find(number: int) -> Lab:
    """Return the lab with this number. Raises UnknownLab if no lab has it."""
    known = {lab.number: lab for lab in labs()}
    if number not in known:
        raise UnknownLab(f"there is no lab {number}; the labs are {', '.join(map(str, known))} (hmb lab list)")
    return known[number]
