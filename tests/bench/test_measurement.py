"""Tests of benchmark commands. A command measures all systems in each round, stores the samples, and prints tables."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hmb.bench.measurement import CommaList, Measurement, alternate, broker_options, scenario, versus_option
from hmb.bench.peers import Installation
from hmb.bench.report.view import Column, SampleView

VIEW = SampleView(columns=(Column("seconds", "s"),), title=lambda _: "Naps")


@scenario("naps", VIEW)
@versus_option
@click.option("--lengths", type=CommaList(click.INT), default=[1])
def nap(measurement: Measurement, versus: Installation | None, lengths: list[int]) -> None:
    """In each round, add one sample for each number in `lengths`. The unit of a number is 0.1 s: 2 means 0.2 s."""
    for number, length in measurement.rounds(lengths):
        measurement.add(number, "HMB", "", {"length": length}, {"seconds": length / 10})


def test_each_round_has_all_contestants_and_begins_with_the_next_one() -> None:
    rounds = list(alternate("abc", 4))
    by_round = ["".join(name for number, name in rounds if number == each) for each in range(4)]
    assert by_round == ["abc", "bca", "cab", "abc"]


def test_a_command_keeps_its_samples_and_prints_its_tables(tmp_path: Path) -> None:
    result = CliRunner().invoke(nap, ["--lengths", "1,2", "--repeat", "2", "--results", str(tmp_path)])
    assert result.stdout.splitlines()[0] == "Naps"
    (path,) = tmp_path.glob("naps-*.json")
    samples = json.loads(path.read_text())["samples"]
    assert [(each["turn"], each["parameters"]["length"]) for each in samples] == [(0, 1), (0, 2), (1, 2), (1, 1)]
    assert f"all runs: {path}" in result.stderr


def test_json_is_the_file_and_nothing_else(tmp_path: Path) -> None:
    result = CliRunner().invoke(nap, ["--results", str(tmp_path), "--json"])
    (path,) = tmp_path.glob("naps-*.json")
    assert json.loads(result.stdout) == json.loads(path.read_text())


def test_two_installations_get_five_rounds(tmp_path: Path) -> None:
    python = Installation.own().python
    result = CliRunner().invoke(nap, ["--versus", str(python), "--results", str(tmp_path), "--json"])
    assert len(json.loads(result.stdout)["samples"]) == 5


@pytest.mark.parametrize("arguments", [["--lengths", "1,x"], ["--repeat", "0"], ["--versus", "/nowhere"]])
def test_a_wrong_option_is_a_usage_error(arguments: list[str], tmp_path: Path) -> None:
    assert CliRunner().invoke(nap, [*arguments, "--results", str(tmp_path)]).exit_code == 2


def test_versus_is_a_checkout_or_an_address(tmp_path: Path) -> None:
    found: list[object] = []

    @click.command()
    @broker_options
    def command(bootstrap: str | None, versus: object) -> None:
        found.append(versus)

    own = Installation.own().python
    for value in ("localhost:9092", str(own)):
        assert CliRunner().invoke(command, ["--versus", value]).exit_code == 0
    assert found[0] == "localhost:9092" and isinstance(found[1], Installation) and found[1].python == own
    assert "no Python in" in CliRunner().invoke(command, ["--versus", str(tmp_path)]).stderr
