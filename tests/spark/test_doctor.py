"""Tests of `hmb spark doctor`: it prints each finding, and its exit code shows whether something is missing."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from hmb.cli.main import main
from hmb.spark.local import doctor
from hmb.spark.local.environment import Finding


def test_something_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = [Finding("pandas", "3.0.1", "Spark does not work with pandas 3.0.1 yet", "pip install 'pandas<3'")]
    monkeypatch.setattr(doctor, "findings", lambda: bad)
    result = CliRunner().invoke(main, ["spark", "doctor"])
    assert result.exit_code == 1
    assert "MISSING pandas   Spark does not work with pandas 3.0.1 yet\n" in result.stdout
    assert "to fix it: pip install 'pandas<3'\n" in result.stdout
    lines = CliRunner().invoke(main, ["spark", "doctor", "--json"]).stdout.splitlines()
    assert {each["name"]: each["ok"] for each in map(json.loads, lines)}["pandas"] is False


def test_all_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setattr(doctor, "findings", lambda: [Finding("java", "17 at /java (PATH)")])
    monkeypatch.setattr(doctor, "_source", lambda: Finding("source", "there"))
    result = CliRunner().invoke(main, ["spark", "doctor"])
    assert result.exit_code == 0
    assert "ok      java     17 at /java (PATH)\n" in result.stdout


def test_workers_that_would_run_another_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/python2")
    told = {each.name: each for each in doctor.examine()}["workers"]
    assert told.problem == "PYSPARK_PYTHON names a different Python than this one"
    assert told.fix.startswith("unset PYSPARK_PYTHON")
