"""Builds the folder for teachers: the solutions of both exercises of each lab, and the notes for teachers.

`make instructor` runs this program. The folder has the form of a class with one student, whose name is `solutions`. The
command `hmb lab grade` therefore checks all solutions:

    build/instructor/README.md
    build/instructor/solutions/lab-04/answer.py     the solution of the first exercise
    build/instructor/solutions/lab-04/second.py     the solution of the second exercise
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from hmb.cli.lab.catalog import FIRST, SECOND, labs

ROOT = Path(__file__).resolve().parents[1]
SECTION = "\n## For teachers\n"  # the heading in the page about all labs


def notes() -> str:
    """Return the notes about the second exercises, and then the notes for teachers of the documentation."""
    own = (ROOT / "instructor" / "README.md").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "labs" / "index.md").read_text(encoding="utf-8")
    return f"{own.rstrip()}\n\n## Notes about all labs\n{page.partition(SECTION)[2]}"


def build(folder: Path) -> None:
    """Build the folder. If it exists, replace its files."""
    for lab in labs():
        place = folder / "solutions" / f"lab-{lab.number:02}"
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(lab.folder / "solution.py", place / FIRST.answer)
        shutil.copy(ROOT / "instructor" / f"{lab.folder.name}.py", place / SECOND.answer)
    (folder / "README.md").write_text(notes(), encoding="utf-8")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "instructor"
    build(target)
    print(f"{target}: read README.md there; to check all solutions: hmb lab grade {target}")
