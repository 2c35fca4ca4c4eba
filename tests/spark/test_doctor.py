"""Tests of `hmb spark doctor`: it prints each finding, and its exit code shows whether something is missing."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from hmb.cli.main import main
from hmb.spark.local import doctor
from hmb.spark.local.environment import Finding


def test_something_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = [Finding("pandas", "2.1.4", "pandas 2.1.4 is too old: 2.2 is needed", "pip install 'pandas>=2.2'")]
    monkeypatch.setattr(doctor, "findings", lambda: bad)
    result = CliRunner().invoke(main, ["spark", "doctor"])
    assert result.exit_code == 1
    assert "MISSING pandas   pandas 2.1.4 is too old: 2.2 is needed\n" in result.stdout
    assert "to fix it: pip install 'pandas>=2.2'\n" in result.stdout
    lines = CliRunner().invoke(main, ["spark", "doctor", "--json"]).stdout.splitlines()
    assert {each["name"]: each["ok"] for each in map(json.loads, lines)}["pandas"] is False


def test_all_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setattr(doctor, "findings", lambda: [Finding("java", "17 at /java (PATH)")])
    monkeypatch.setattr(doctor, "_source", lambda: Finding("source", "there"))
    result = CliRunner().invoke(main, ["spark", "doctor"])
    assert result.exit_code == 0
    assert "ok      java     17 at /java (PATH)\n" in result.stdout


@pytest.fixture
def other_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a `python3` on the PATH that cannot import HMB. Return its path."""
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'hmb'\" >&2; exit 1\n")
    python.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    return python


def test_a_plain_session_that_would_not_find_the_data_source(other_python: Path) -> None:
    """The command `hmb spark doctor` also checks the Python interpreter of a plain Spark session.

    Before a bug was fixed, the command checked only its own interpreter. It did not notice that a plain session does
    not know the format `hmb`.
    """
    found = {each.name: each for each in doctor.examine()}["source"]
    assert found.found.startswith("hmb.spark.session() registers format('hmb'); ")
    assert f"runs {other_python} (ModuleNotFoundError: No module named 'hmb')" in found.found
    assert found.found.endswith(f"set PYSPARK_PYTHON={sys.executable}")


def test_a_plain_session_with_an_editable_installation(
    other_python: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """PySpark looks for data sources only in the folders of sys.path. None of them holds an editable installation."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'hmb[spark]'")
    folder = pyspark_hmb_folder()
    finder = tmp_path / "python-with-finder"
    finder.write_text(f"#!/bin/sh\necho 'PYTHONPATH={folder}' >&2; exit 1\n")
    finder.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(finder))
    found = {each.name: each for each in doctor.examine()}["source"]
    assert found.found == f"hmb.spark.session() registers format('hmb'); a plain session needs PYTHONPATH={folder}"


def pyspark_hmb_folder() -> Path:
    spec = importlib.util.find_spec("pyspark_hmb")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parents[1]


def test_a_plain_session_that_finds_the_data_source(other_python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'hmb[spark]'")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", str(pyspark_hmb_folder()))
    found = {each.name: each for each in doctor.examine()}["source"]
    assert (found.problem, found.found) == (
        "",
        f"format('hmb') registers itself in a plain session, which runs {sys.executable}",
    )


def test_an_import_error_of_the_data_source_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the module of the data source cannot be imported, the user sees the reason.

    Before a bug was fixed, PySpark ignored the import error, and the user saw only that the format was unknown.
    """
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'hmb[spark]'")
    monkeypatch.setitem(sys.modules, "hmb.spark.source", None)
    monkeypatch.delitem(sys.modules, "pyspark_hmb", raising=False)
    source = importlib.import_module("pyspark_hmb").DefaultSource
    monkeypatch.delitem(sys.modules, "pyspark_hmb")
    assert source.name() == "hmb"
    for call in (
        lambda it: it.schema(),
        lambda it: it.reader(None),
        lambda it: it.streamReader(None),
        lambda it: it.writer(None, False),
        lambda it: it.streamWriter(None, False),
    ):
        with pytest.raises(ImportError, match=r"hmb cannot be loaded with PySpark \d.*hmb\.spark\.source"):
            call(source({}))


def test_workers_that_would_run_another_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/python2")
    told = {each.name: each for each in doctor.examine()}["workers"]
    assert told.problem == "PYSPARK_PYTHON names a different Python than this one"
    assert told.fix.startswith("unset PYSPARK_PYTHON")
