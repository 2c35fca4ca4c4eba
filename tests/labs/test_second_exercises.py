"""Tests of the second exercises: the starter fails, the solution passes, and each wrong answer gets a clear message.

To make a wrong answer, the test copies a correct solution and changes one piece of its code. The wheel (the package
that users install) contains neither the solutions nor the wrong answers.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hmb.cli.lab.catalog import SECOND, Lab, labs
from hmb.cli.lab.checking import check
from tests.labs.second_mistakes import MISTAKES, Mistake

INSTRUCTOR = Path(__file__).parents[2] / "instructor"
SEED = 7
TASK = re.compile(r"^`hmb lab check \d+ --second` tests these requirements:\n(.*?)\n\n", re.MULTILINE | re.DOTALL)


def solution(lab: Lab) -> Path:
    return INSTRUCTOR / f"{lab.folder.name}.py"


@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.folder.name)
def test_the_solution_meets_all_requirements(lab: Lab) -> None:
    for seed in (SEED, SEED + 1):
        results = check(lab, solution(lab), seed, exercise=SECOND)
        assert [each.error for each in results] == [None] * lab.requirement_count(SECOND)
        assert len(results) >= 4


@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.folder.name)
def test_the_starter_can_be_loaded_and_fails(lab: Lab) -> None:
    results = check(lab, lab.folder / SECOND.starter, SEED, exercise=SECOND)
    assert any(each.error is not None for each in results)


@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.folder.name)
def test_the_text_lists_each_requirement_of_the_check(lab: Lab) -> None:
    listed = TASK.search(lab.text)
    assert listed and f"hmb lab check {lab.number} --second" in lab.text
    assert len(re.findall(r"^\d+\. ", listed[1], re.MULTILINE)) == lab.requirement_count(SECOND)
    assert sum(mistake.lab == lab for mistake in MISTAKES) >= 3


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_wrong_answer_gets_a_message_that_names_its_mistake(mistake: Mistake, tmp_path: Path) -> None:
    right = solution(mistake.lab).read_text(encoding="utf-8")
    assert right.count(mistake.right) == 1
    (tmp_path / SECOND.answer).write_text(right.replace(mistake.right, mistake.wrong), encoding="utf-8")
    errors = [each.error for each in check(mistake.lab, tmp_path / SECOND.answer, SEED, exercise=SECOND) if each.error]
    assert errors and mistake.message in errors[0]
