"""Tests of `by_origin`: runs of different machines, or with different values of `--scale`, are never combined."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hmb.bench.errors import InvalidSamples
from hmb.bench.report import origin, show
from hmb.bench.report.origin import Origin, by_origin, file_suffixes, newest_files, view_of
from hmb.cli.bench import COMMANDS


def write(folder: Path, name: str, seconds: float, cpu: str = "fast", command: str = "hmb bench start") -> Path:
    sample: dict[str, Any] = {
        "suite": "start", "broker": "HMB", "client": "HMB", "turn": 0, "parameters": {},
        "figures": {"first_ack_seconds": seconds, "broker_resident_bytes": 3e7}, "at": "2026-11-21T20:00:00Z",
    }  # fmt: skip
    document = {"machine": {"cpu": cpu, "cores": 2}, "command": command, "samples": [sample]}
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document))
    return path


def test_files_of_one_machine_and_scale_are_merged_and_others_are_not(tmp_path: Path) -> None:
    paths = [
        write(tmp_path, "start-1", 0.1),
        write(tmp_path, "start-2", 0.3),
        write(tmp_path, "start-3", 9.0, cpu="slow"),
        write(tmp_path, "start-4", 0.01, command="hmb bench start --scale 0.1"),
    ]
    groups = by_origin(paths)
    assert [len(samples) for samples in groups.values()] == [2, 1, 1]
    assert [sample.turn for sample in groups[Origin("start", "fast", 2, 1.0)]] == [0, 1]
    assert [str(each) for each in groups] == ["fast, 2 cores", "slow, 2 cores", "fast, 2 cores, --scale 0.1"]


def test_each_machine_has_a_table_of_its_own_that_names_the_cpu(tmp_path: Path) -> None:
    paths = [write(tmp_path, "start-1", 0.1), write(tmp_path, "start-2", 9.0, cpu="slow")]
    lines = CliRunner().invoke(show.command, list(map(str, paths))).stdout.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == ["start: fast, 2 cores", "start: slow, 2 cores"]
    assert sum("0.10 (0.10 .. 0.10)" in line for line in lines) == 1


def test_own_runs_come_before_published_ones_and_the_newest_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, published = tmp_path / "own", tmp_path / "published"
    monkeypatch.setattr(origin, "DIRECTORY", own)
    monkeypatch.setattr(origin, "PUBLISHED", published)
    with pytest.raises(InvalidSamples, match="no runs in"):
        by_origin([])
    first = write(published, "start-20260101-000000", 0.1)
    assert newest_files() == [first]
    write(own, "start-20260102-000000", 0.2)
    other = write(own, "start-20260103-000000", 0.2, cpu="slow")
    newest = write(own, "start-20260104-000000", 0.2)
    assert sorted(newest_files()) == [other, newest]


def test_names_of_pictures_differ_where_machines_do() -> None:
    one, two, alone = Origin("start", "A(R) 1", 2, 1.0), Origin("start", "B", 4, 0.5), Origin("memory", "B", 4, 1.0)
    assert file_suffixes([one, two, alone]) == {one: "-a-r-1-2-cores", two: "-b-4-cores-scale-0.5", alone: ""}


def test_an_unknown_suite_and_an_incomplete_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSamples, match="no suite is called 'nonsense'"):
        view_of("nonsense")
    (tmp_path / "x.json").write_text('{"samples": [{}]}')
    with pytest.raises(InvalidSamples, match=r"x\.json is not a file of samples"):
        by_origin([tmp_path / "x.json"])


SUITES = {name: module for name, (module, _) in COMMANDS.items() if not module.startswith(("report.", "peers."))}


@pytest.mark.parametrize(("suite", "module"), SUITES.items())
def test_the_view_of_a_suite_is_that_of_its_command(suite: str, module: str) -> None:
    assert view_of(suite) is import_module(f"hmb.bench.{module}").VIEW
