"""Where Kafka's jars are brought to, and looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from hmb.bench import peers
from hmb.bench.peers import fetch as fetch_kafka


def test_a_checkout_keeps_what_it_fetches(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    assert peers.fetched(tmp_path) == tmp_path / ".peers"


def test_an_installed_package_has_a_folder_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a folder among the installed packages."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert peers.fetched(tmp_path) == tmp_path / "cache" / "hmb" / "kafka"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert peers.fetched(tmp_path) == tmp_path / ".cache" / "hmb" / "kafka"


def test_the_script_is_part_of_the_package() -> None:
    """It was the tests', which no package has."""
    assert fetch_kafka.SCRIPT.parent == Path(fetch_kafka.__file__).parent and fetch_kafka.SCRIPT.exists()
    assert (fetch_kafka.SCRIPT.parent / "maven.sh").exists()


def test_without_maven_it_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sys.argv", ["hmb bench fetch-kafka"])
    assert fetch_kafka.main() == 1
    assert "hmb: java is not on the PATH" in capsys.readouterr().err
