"""`hmb bench` finds its suites, and passes on what they are told."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from hmb.cli.bench import ELSEWHERE, SCENARIOS, command


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_suite_is_there(name: str) -> None:
    assert callable(importlib.import_module(f"hmb.bench.{ELSEWHERE.get(name, f'scenarios.{name}')}").main)


def test_help_lists_the_suites() -> None:
    shown = CliRunner().invoke(command, ["--help"]).output
    for name in SCENARIOS:
        assert f"  {name} " in shown


def test_options_are_the_suites_own() -> None:
    result = CliRunner().invoke(command, ["produce", "--help"])
    assert result.exit_code == 0 and "--cells" in result.output and "hmb bench produce" in result.output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["produce", "--repeat", "0"], "'0' is not a number from 1 on"),
        (["produce", "-b", "here:there"], "is not an address"),
        (["thesis", "--cells", "11"], "invalid choice: 11"),
        (["plot", "nothing.json"], "hmb: [Errno 2] No such file or directory: 'nothing.json'"),
        (["nonsense"], "No such command 'nonsense'"),
    ],
)
def test_mistakes_are_named(arguments: list[str], complaint: str, capfd: pytest.CaptureFixture[str]) -> None:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code in (1, 2, 3)
    assert complaint in result.output + capfd.readouterr().err


def test_a_folder_without_kafka_is_said(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["start", "--kafka-dir", str(tmp_path), "--results", str(tmp_path)])
    assert result.exit_code == 1 and "hmb: no Kafka in" in result.output


@pytest.mark.parametrize("suite", ["produce", "consume", "latency", "clients"])
def test_a_broker_that_cannot_be_reached_is_code_4_as_everywhere(suite: str, tmp_path: Path) -> None:
    """It was 1, and nothing said that `hmb` spoke."""
    arguments = [suite, "-b", "127.0.0.1:1", "--results", str(tmp_path), "--repeat", "1"]
    result = CliRunner().invoke(command, arguments)
    assert "hmb: nobody listens on 127.0.0.1:1" in result.stderr, result.stderr
    assert result.exit_code == 4
