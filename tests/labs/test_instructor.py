"""Tests of the folder for teachers, which contains the solutions of all exercises.

The wheel (the package that users install) must not contain the solution of a lab's second exercise.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hmb.cli.lab.catalog import EXERCISES, labs
from hmb.cli.lab.grading import submissions

ROOT = Path(__file__).parents[2]
FILES = {"lab.md", "hints.md", "starter.py", "check.py", "solution.py", "second_starter.py", "second_check.py"}
NOTEBOOKS = {"03_batch_and_stream/events.md", "06_sparse_index/batches.md", "15_pipeline/benchmarks.md"}


def instructor(folder: Path) -> None:
    command = [sys.executable, ROOT / "tools" / "instructor.py", folder]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


def test_the_folder_for_teachers_is_a_submission_with_all_solutions(tmp_path: Path) -> None:
    instructor(tmp_path)
    instructor(tmp_path)  # again: the files are replaced
    found = [(each.lab.number, each.exercise) for each in submissions(tmp_path)]
    assert found == [(lab.number, exercise) for lab in labs() for exercise in EXERCISES]
    notes = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert all(f"\n| {lab.number} | " in notes for lab in labs())
    assert "## How to grade" in notes and "**A syllabus for five weeks**" in notes


def test_a_lab_has_no_file_with_a_solution_of_its_second_exercise() -> None:
    found = {f"{lab.folder.name}/{path.name}" for lab in labs() for path in lab.folder.glob("*.*")}
    assert found == {f"{lab.folder.name}/{name}" for lab in labs() for name in FILES} | NOTEBOOKS
    solutions = {path.stem for path in (ROOT / "instructor").glob("*.py")}
    assert solutions == {lab.folder.name for lab in labs()}


@pytest.mark.slow
@pytest.mark.external
def test_a_wheel_contains_no_solution_of_a_second_exercise_and_no_planted_mistake(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in ("hmb", "cli", "bench", "labs", "pyspark_hmb", "instructor", "tests"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--retries", "0", "--timeout", "10"]
    built = subprocess.run([*pip, "-w", tmp_path, source], capture_output=True, text=True, timeout=100)
    if built.returncode != 0:
        pytest.skip(f"pip cannot build a wheel without a network: {built.stderr.strip()[-200:]}")
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        contents = {name: wheel.read(name) for name in wheel.namelist()}
    for lab in labs():
        assert {f"hmb/labs/{lab.folder.name}/{name}" for name in FILES} <= contents.keys()
    tops = {name.split("/")[0] for name in contents}
    assert {name for name in tops if not name.endswith(".dist-info")} == {"hmb", "pyspark_hmb"}
    hidden = [*(ROOT / "instructor").rglob("*.*"), *(ROOT / "tests" / "labs" / "wrong").rglob("*.py")]
    assert len(hidden) > 100 and not {path.read_bytes() for path in hidden if path.is_file()} & {*contents.values()}
