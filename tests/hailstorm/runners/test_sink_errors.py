"""Tests of exceptions in a sink.

If the cause of an exception can be temporary, for example a locked database, the topology restarts and repeats the
write. Any other exception ends the run.
"""

from __future__ import annotations

import importlib
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hmb.client import KafkaError
from hmb.hailstorm.errors import HailstormError, can_pass
from hmb.hailstorm.negotiator import NegotiatorSettings
from hmb.hailstorm.runners import ProcessRunner, Runner, RunSettings, ThreadRunner
from hmb.hailstorm.snapshots import DirectorySnapshotStore
from hmb.protocol.errors import ErrorCode

ROOT = Path(__file__).parents[3]
Start = Callable[..., Runner]


@pytest.fixture(params=["threads", pytest.param("workers", marks=pytest.mark.slow)])
def start(
    request: pytest.FixtureRequest,
    servers: str,
    make_topic: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Start:
    """Return a function that starts a topology with one record.

    The function has two arguments. The string `sink` selects the kind of sink. The list `errors` contains the errors
    that the first calls of the sink raise, one for each call.
    """
    monkeypatch.setenv("HAILSTORM_TEST_TOPIC", make_topic([[b"sun"]]))
    monkeypatch.setenv("HAILSTORM_TEST_ERRORS", str(tmp_path / "errors"))
    monkeypatch.setenv("HAILSTORM_TEST_OUTPUT", str(tmp_path / "output"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def make(sink: str, errors: list[str], *, grace: float | None = None) -> Runner:
        monkeypatch.setenv("HAILSTORM_TEST_SINK", sink)
        (tmp_path / "errors").write_text("\n".join(errors))
        topology = importlib.reload(importlib.import_module("tests.hailstorm.runners.failing")).topology
        options = RunSettings(servers, "end", NegotiatorSettings(grace), max_restarts=3)
        store = DirectorySnapshotStore(tmp_path / "snapshots")
        if request.param == "threads":
            return ThreadRunner(topology, options, store)
        return ProcessRunner(topology, options, store, 1)

    return make


def restarts(runner: Runner) -> int:
    return runner.restarts.count


def test_a_mistake_in_write_ends_the_run_at_once_with_the_name_of_the_sink(start: Start) -> None:
    with start("once", ["ValueError"]) as runner:
        problem = r"^out-0: write raised ValueError for 'sun' from \S+-0 at offset 0: no such city$"
        with pytest.raises(HailstormError, match=problem):
            runner.wait(60)
        assert restarts(runner) == 0


def test_an_outage_in_write_is_tried_again(start: Start) -> None:
    with start("once", ["OSError", "OSError"]) as runner:
        assert runner.wait(60).epochs == 3


def test_an_outage_that_does_not_end_ends_the_run(start: Start) -> None:
    problem = "4 restarts without progress, most often because .*the disk is away"
    with start("once", ["OSError"] * 10) as runner, pytest.raises(HailstormError, match=problem):
        runner.wait(60)


def test_a_statement_with_a_mistake_ends_the_run(start: Start) -> None:
    problem = r"out-0: write raised OperationalError for 1 outputs up to .*: no such table: missing"
    with start("sql", []) as runner:
        with pytest.raises(HailstormError, match=problem):
            runner.wait(60)
        assert restarts(runner) == 0


@pytest.mark.parametrize("error", ["ValueError", "OSError"])
def test_a_sink_that_fails_at_the_end_fails_the_run(start: Start, tmp_path: Path, error: str) -> None:
    """If a sink cannot write its last outputs, the run of the topology ends with an error.

    A sink that holds outputs back writes the last outputs when the topology has already ended. The runner does not
    repeat this write. When the user starts the topology again, the sink writes these outputs.
    """
    problem = rf"the last outputs are not written, but the topology writes them at its next start: out-0: .*{error}"
    with start("held", [error]) as runner, pytest.raises(HailstormError, match=problem):
        runner.wait(60)
    assert not (tmp_path / "output").exists()
    with start("held", []) as runner:
        runner.wait(60)
    assert (tmp_path / "output").read_text() == "sun\n"


# -- which errors are temporary


def sqlite_error(statement: str) -> sqlite3.Error:
    with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(sqlite3.Error) as caught:
        connection.execute("CREATE TABLE words (word TEXT UNIQUE)")
        connection.executescript(statement)
    return caught.value


def test_outages_can_pass_and_mistakes_cannot(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "db")) as one, closing(sqlite3.connect(tmp_path / "db", timeout=0)) as two:
        one.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError) as locked:
            two.execute("BEGIN EXCLUSIVE")
    outages = [locked.value, ConnectionResetError(), TimeoutError(), KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "")]
    assert [error for error in outages if not can_pass(error)] == []
    mistakes = [
        sqlite_error("SELECT * FROM missing"),
        sqlite_error("SELEC"),
        sqlite_error("INSERT INTO words VALUES ('a'), ('a')"),
        KeyError("city"),
    ]
    assert [error for error in mistakes if can_pass(error)] == []


def test_errors_of_other_databases_are_recognized_by_their_names() -> None:
    outage = type("OperationalError", (Exception,), {})
    assert can_pass(type("AdminShutdown", (outage,), {})())
    assert not can_pass(type("ProgrammingError", (Exception,), {})())
