"""Check the answers of a whole class. Each student has a different seed, and therefore different random cases.

The folder of a class, for example `submissions`, contains one folder for each student. A student's folder
contains the folders that `hmb lab start` has created:
    submissions/anna/lab-04/answer.py
    submissions/anna/lab-04/second.py
    submissions/ben/lab-04/answer.py

The seed for the random cases is computed from the name of the student's folder, so a student cannot choose a seed with
easy cases. `hmb lab start 4 --seed anna` uses the same seed as this module uses for the folder `anna`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .catalog import EXERCISES, FIRST, Exercise, Lab, find
from .checking import CheckFailed, Result, check

LAB_FOLDER = re.compile(r"lab-(\d\d)")


class Submission(NamedTuple):
    """The answer of one student to one exercise."""

    student: str
    lab: Lab
    exercise: Exercise
    answer: Path


@dataclass(frozen=True)
class Grade:
    """The result of one answer. `problem` says what is wrong with the answer, and is empty if nothing is wrong."""

    student: str
    lab: int
    exercise: str  # "first" or "second"
    passed: int  # the number of requirements that the answer meets
    of: int  # the number of requirements of the exercise
    problem: str


def seed_of(student: str) -> int:
    """Return the seed for a student's name. If the name is a number, the seed is this number."""
    return int(student) if student.isdecimal() else zlib.crc32(student.encode())


def submissions(folder: Path) -> list[Submission]:
    """Return each answer in a folder of submissions, sorted by student, lab and exercise. Raises UnknownLab."""
    found = []
    for place in sorted(folder.glob("*/lab-*")):
        if name := LAB_FOLDER.fullmatch(place.name):
            answers = [each for each in EXERCISES if (place / each.answer).is_file()]
            found += [Submission(place.parent.name, find(int(name[1])), each, place / each.answer) for each in answers]
    return found


def missing(folder: Path, found: list[Submission]) -> list[Grade]:
    """Return a grade with 0 met requirements for each missing answer to the first exercise of a lab.

    The function ignores a lab if no student has answered its first exercise. For example, Anna has answered lab 4,
    Ben has answered no lab, and the class has no other students. The result is one grade: Ben, lab 4.
    """
    first = {(each.student, each.lab) for each in found if each.exercise is FIRST}
    students = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    labs = sorted({lab for _, lab in first}, key=lambda lab: lab.number)
    return [
        Grade(student, lab.number, FIRST.name, 0, lab.requirement_count(), f"lab-{lab.number:02}/answer.py is missing")
        for student in students
        for lab in labs
        if (student, lab) not in first
    ]


def grades(found: list[Submission]) -> Iterator[Grade]:
    """Check the answers one after the other. An answer that cannot be imported meets no requirement."""
    for each in found:
        try:
            results = check(each.lab, each.answer, seed_of(each.student), exercise=each.exercise)
        except (CheckFailed, OSError) as error:
            count = each.lab.requirement_count(each.exercise)
            yield Grade(each.student, each.lab.number, each.exercise.name, 0, count, str(error))
        else:
            yield _grade(each, results)


def _grade(found: Submission, results: list[Result]) -> Grade:
    failed = [result for result in results if result.error is not None]
    problem = " ".join(f"{failed[0].requirement} {failed[0].error}".split()) if failed else ""
    passed = len(results) - len(failed)
    return Grade(found.student, found.lab.number, found.exercise.name, passed, len(results), problem)
