"""Tests of `hmb bench hailstorm`: it measures how fast stream processors count words, and names missing ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hmb.bench.errors import PeerFailed
from hmb.bench.streams import hailstorm


def test_a_small_run_prints_a_row_for_each_processor(tmp_path: Path) -> None:
    names = "hailstorm,hailstorm-no-snapshots,hailstorm-2-processes-killed"
    arguments = ["--records", "2000", "--repeat", "1", "--only", names, "--results", str(tmp_path)]
    result = CliRunner().invoke(hailstorm.command, arguments)
    assert result.exit_code == 0, result.output
    assert "Word count over 2,000 records" in result.output
    assert all(f" {name} " in result.output for name in names.split(","))
    assert "recovery, s" in result.output and "Hailstorm: a snapshot every second" in result.output


def test_a_processor_that_is_not_installed_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hailstorm, "find_spec", lambda name: None)
    assert list(hailstorm.available(["hailstorm", "bytewax"])) == ["hailstorm"]
    assert capsys.readouterr().err == "without bytewax: bytewax is not installed; run `pip install bytewax`\n"


def test_a_run_that_misses_records_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    class Finished:
        output = '{"seconds": 1.0, "words": 9}\n'

    monkeypatch.setattr(hailstorm, "run_program", lambda command, name: Finished())
    with pytest.raises(PeerFailed, match="hailstorm counted 9 of 10 words"):
        hailstorm.count("hailstorm", "localhost:1", 10)
