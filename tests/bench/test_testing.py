"""A test of the command `hmb bench testing`. To save time, the command runs only a few tests here."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from hmb.bench.testing import GOALS, command


def test_the_table_has_each_figure_with_its_goal(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["--num-tests", "2", "--results", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for label, goal in GOALS.values():
        line = next(line for line in result.stdout.splitlines() if line.strip().startswith(label))
        assert f"{goal * 1000:,.0f}" in line


def test_each_round_is_a_sample(tmp_path: Path) -> None:
    options = ["--num-tests", "2", "--repeat", "2", "--json", "--results", str(tmp_path)]
    result = CliRunner().invoke(command, options)
    samples = json.loads(result.stdout)["samples"]
    assert [sample["figures"].keys() for sample in samples] == [GOALS.keys()] * 2
