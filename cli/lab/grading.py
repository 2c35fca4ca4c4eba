"""Check the answers of a whole class. Each student has a different seed, and therefore different random cases.

The folder of a class contains one folder for each student. A student's folder contains the folders that `hmb lab start`
has created:
    submissions/anna/lab-04/answer.py
    submissions/ben/lab-04/answer.py

The seed is computed from the name of the student's folder, so a student cannot choose a seed with easy cases. `hmb lab
start 4 --seed anna` uses the same seed as this module uses for the folder `anna`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .catalog import Lab, find
from .checking import CheckFailed, Result, check
from .workspace import ANSWER

LAB_FOLDER = re.compile(r"lab-(\d\d)")


@dataclass(frozen=True)
class Grade:
    """The result of one answer. `problem` says what is wrong with the answer. It is empty if the answer passes."""

    student: str
    lab: int
    passed: int  # the number of requirements that the answer meets
    of: int  # the number of requirements of the lab
    problem: str


def seed_of(student: str) -> int:
    """Return the seed for a student's name. If the name is a number, the seed is this number."""
    return int(student) if student.isdecimal() else zlib.crc32(student.encode())


def submissions(folder: Path) -> list[tuple[str, Lab, Path]]:
    """Return (student, lab, path of the answer) for each answer in a folder of submissions. Raises UnknownLab.

    The list is sorted by student and lab.
    """
    found = []
    for answer in sorted(folder.glob(f"*/lab-*/{ANSWER}")):
        if name := LAB_FOLDER.fullmatch(answer.parent.name):
            found.append((answer.parent.parent.name, find(int(name[1])), answer))
    return found


def grades(found: list[tuple[str, Lab, Path]]) -> Iterator[Grade]:
    """Check the answers one after the other. An answer that cannot be imported meets no requirement."""
    for student, lab, answer in found:
        try:
            results = check(lab, answer, seed_of(student))
        except (CheckFailed, OSError) as error:
            yield Grade(student, lab.number, 0, lab.requirement_count, str(error))
        else:
            yield _grade(student, lab, results)


def _grade(student: str, lab: Lab, results: list[Result]) -> Grade:
    failed = [result for result in results if result.error is not None]
    problem = " ".join(f"{failed[0].requirement} {failed[0].error}".split()) if failed else ""
    return Grade(student, lab.number, len(results) - len(failed), len(results), problem)
