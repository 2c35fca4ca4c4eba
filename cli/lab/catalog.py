"""Find the labs that are installed."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

FOLDER_NAME = re.compile(r"(\d\d)_\w+")
HEADING = re.compile(r"^# (.+)$", re.MULTILINE)
OWN_PAGES = ("lab.md", "hints.md")  # the pages that every lab has
REQUIREMENT = re.compile(r"^def test_", re.MULTILINE)
HINT = re.compile(r"^## ", re.MULTILINE)

HOW_TO_RUN = """
```text
pip install 'hmb[labs]'
hmb lab start {number}
```

The first command also installs matplotlib, which the programs of the lab need, and pytest, which the
checks need. The second command creates the folder `lab-{number:02}`. Each program of this page uses
variables of the programs before it.
Run the programs in this folder, in one of two ways:

- In Jupyter: `pip install notebook`, then `jupyter notebook lab.ipynb`.
- In a terminal: `python lab.py`. This file contains all programs of the page in their order, and saves
  each plot as a PNG file.

A program that calls `load_answer` runs your own answer. It needs an answer that has passed `hmb lab check {number}`.
Until then, `lab.py` stops at this program.
"""


@dataclass(frozen=True)
class Exercise:
    """One of the two exercises of a lab: its name, and the names of its files. All labs use the same file names."""

    name: str
    starter: str  # a file in the folder of the lab: the beginning of an answer
    check: str  # a file in the folder of the lab: the tests of the requirements
    answer: str  # the student's answer: a file in the folder in which the student works


FIRST = Exercise("first", "starter.py", "check.py", "answer.py")
SECOND = Exercise("second", "second_starter.py", "second_check.py", "second.py")
EXERCISES = (FIRST, SECOND)


class UnknownLab(Exception):
    """No lab has the given number. The message lists the numbers of all labs."""


@dataclass(frozen=True)
class Lab:
    """One lab. `folder` contains the files of the lab: its text, its hints, and the files of its two exercises.

    The wheel contains the solution of the first exercise only. Teachers get both solutions with `make instructor`.
    """

    number: int
    folder: Path

    @property
    def text(self) -> str:
        """The lab's notebook in MyST Markdown."""
        return (self.folder / "lab.md").read_text(encoding="utf-8")

    @property
    def page(self) -> str:
        """The lab's notebook, with added instructions for students: how to start the lab and run its programs."""
        heading = f"\n# {self.title}\n"
        return self.text.replace(heading, heading + HOW_TO_RUN.format(number=self.number), 1)

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

    def requirement_count(self, exercise: Exercise = FIRST) -> int:
        """Return the number of requirements of an exercise. Each requirement is a test in the exercise's check."""
        return len(REQUIREMENT.findall((self.folder / exercise.check).read_text(encoding="utf-8")))

    def starter(self, exercise: Exercise = FIRST) -> str:
        return (self.folder / exercise.starter).read_text(encoding="utf-8")

    @property
    def solution(self) -> str:
        """The solution of the first exercise."""
        return (self.folder / "solution.py").read_text(encoding="utf-8")

    @property
    def digest(self) -> int:
        """A checksum of the lab's text and requirements. It shows whether a new version of HMB has changed the lab."""
        names = ("lab.md", *(exercise.check for exercise in EXERCISES))
        return zlib.crc32(b"".join((self.folder / name).read_bytes() for name in names))


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
