"""Tests of the folders for Kafka's jars: the folder for downloads, and the folders that benchmarks search."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hmb.bench.peers import fetch, jars


def test_a_checkout_keeps_the_jars_that_it_fetches(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    assert jars.fetch_folder(tmp_path) == tmp_path / ".peers"


def test_an_installed_package_has_a_folder_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package downloads jars to the user's cache.

    Before a bug was fixed, it downloaded them to a folder among the installed Python packages.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert jars.fetch_folder(tmp_path) == tmp_path / "cache" / "hmb" / "kafka"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert jars.fetch_folder(tmp_path) == tmp_path / ".cache" / "hmb" / "kafka"


def test_the_script_is_part_of_the_package() -> None:
    """The script that downloads jars is part of the package.

    Before a bug was fixed, it was in the folder of the tests, which the package does not contain.
    """
    assert fetch.SCRIPT.parent == Path(fetch.__file__).parent and fetch.SCRIPT.exists()
    assert (fetch.SCRIPT.parent / "maven.sh").exists()


def test_without_java_the_command_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    result = CliRunner().invoke(fetch.command)
    assert result.exit_code == 1
    assert "hmb: java is not on the PATH" in result.stderr
