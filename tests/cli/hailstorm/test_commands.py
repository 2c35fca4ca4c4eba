"""Tests of `hmb hailstorm`: the commands `run`, `check`, `snapshots` and `status`, and the weather example."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import subprocess
import time
from pathlib import Path

import click
import pytest

import hmb
from hmb.cli.hailstorm import command
from hmb.cli.lazy_group import LazyGroup
from hmb.client import NewTopic, TopicPartition
from tests.cli.conftest import Hmb, start

PROGRAM = """
from hmb.hailstorm import Bolt, Sink, Spout, Sum, Topology
topology = Topology("words")
topology.spout("lines", Spout("{topic}"))
topology.bolt("split", Bolt.stateless(str.split), after="lines", group=str)
topology.bolt("count", Bolt.keyed(Sum(), key=str, value=lambda word: 1), after="split", group=str)
topology.sink("console", Sink(lambda count: None), after="count")
{more}
"""
LAST_WINS = """
last_wins = Bolt(lambda line, state: [], empty=str, merge=lambda a, b: b or a, lift=lambda line: line)
topology.bolt("last", last_wins, after="lines")
"""


@pytest.fixture
def program(servers: str, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Return the path of a program. Its topology counts the words of a topic with four records."""
    topic = request.node.name.replace("[", "-").replace("]", "-")
    with hmb.Admin(servers) as admin:
        admin.create_topics([NewTopic(topic, 2)])
    with hmb.Producer(servers) as producer:
        producer.send_many(topic, [b"to be", b"or", b"not", b"to be"], partition=0)
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(topic=topic, more=""))
    return path


def test_a_run_until_the_end_leaves_a_complete_snapshot(run: Hmb, servers: str, program: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    result = run("hailstorm", "run", f"{program}:topology", "-b", servers, "--until-end", "--store", store, "--json")
    found = json.loads(result.stdout)
    assert (found["epochs"], found["state_sizes"]["count"], sum(found["completed"].values())) == (1, 4, 4)
    listed = run("hailstorm", "snapshots", store, "--json").stdout.splitlines()
    assert [json.loads(line)["complete"] for line in listed] == [True] * 3


def test_a_second_run_continues_at_the_snapshot(run: Hmb, servers: str, program: Path, tmp_path: Path) -> None:
    arguments = f"{program}:topology", "-b", servers, "--until-end", "--store", str(tmp_path / "store.db"), "--json"
    first, second = (json.loads(run("hailstorm", "run", *arguments).stdout) for _ in range(2))
    assert second["completed"] == first["completed"]
    assert second["epochs"] == 2


def test_a_topology_logs_in_at_a_secured_broker(run: Hmb, tmp_path: Path) -> None:
    """The settings of TLS and SASL also reach the worker processes."""
    with hmb.Broker(users={"alice": "x"}) as broker:
        with hmb.Producer(broker.bootstrap_servers, security=broker.security) as producer:
            producer.send_many("lines", [b"to be", b"or"])
        path = tmp_path / "program.py"
        path.write_text(PROGRAM.format(topic="lines", more=""))
        security = [part for name, value in broker.security.items() for part in ("-X", f"{name}={value}")]
        common = f"{path}:topology", "-b", broker.bootstrap_servers, *security, "--json"
        options = "--until-end", "--workers", "2", "--store", str(tmp_path / "store")
        result = run("hailstorm", "run", *common, *options)
        assert json.loads(result.stdout)["state_sizes"]["count"] == 3
        assert json.loads(run("hailstorm", "check", *common).stdout)["records"] == 2


def test_worker_processes_find_a_topology_that_is_named_by_its_file(
    run: Hmb, servers: str, program: Path, tmp_path: Path
) -> None:
    options = "--until-end", "--workers", "2", "--store", str(tmp_path / "store"), "--json"
    result = run("hailstorm", "run", f"{program}:topology", "-b", servers, *options)
    assert json.loads(result.stdout)["state_sizes"]["count"] == 4


def test_a_sink_in_a_worker_process_can_print_more_than_a_pipe_holds(
    run: Hmb, servers: str, program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A sink in a worker process can print more text than a pipe holds.

    Before a bug was fixed, this text was lost, and the worker stopped when a pipe was full.
    """
    program.write_text(program.read_text().replace("lambda count: None", "lambda count: print(count[0] * 40_000)"))
    options = "--until-end", "--workers", "2", "--store", str(tmp_path / "store")
    run("hailstorm", "run", f"{program}:topology", "-b", servers, *options)
    printed = [line[:3] for line in capfd.readouterr().out.splitlines()]
    assert sorted(printed) == ["beb", "beb", "not", "oro", "tot", "tot"]


def test_check_finds_nothing_wrong_with_word_count(run: Hmb, servers: str, program: Path) -> None:
    result = run("hailstorm", "check", f"{program}:topology", "-b", servers, "--json")
    nothing: dict[str, object] = {"problems": [], "late": {}, "dead_letters": {}, "event_times": {}}
    assert json.loads(result.stdout) == {"topology": "words", "records": 4, **nothing}


def test_check_names_a_merge_that_is_not_commutative(run: Hmb, servers: str, program: Path) -> None:
    topic = "test_check_names_a_merge_that_is_not_commutative"
    program.write_text(PROGRAM.format(topic=topic, more=LAST_WINS))
    result = run("hailstorm", "check", f"{program}:topology", "-b", servers, exit_code=1)
    assert "last: merge is not commutative: merge(a, b) = " in result.stdout


def test_check_of_an_empty_topic_fails(run: Hmb, servers: str, program: Path) -> None:
    with hmb.Admin(servers) as admin:
        admin.create_topics([NewTopic("check-empty", 2)])
    program.write_text(PROGRAM.format(topic="check-empty", more=""))
    result = run("hailstorm", "check", f"{program}:topology", "-b", servers, exit_code=1)
    assert result.stdout.startswith("lines: nothing was checked, because the topic check-empty has no records. A run ")


@pytest.mark.parametrize("command", ["run", "check"])
def test_run_and_check_agree_on_a_missing_topic(run: Hmb, servers: str, tmp_path: Path, command: str) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(topic="nowhere", more=""))
    options = ("--store", str(tmp_path / "store")) if command == "run" else ()
    result = run("hailstorm", command, f"{path}:topology", "-b", servers, *options, exit_code=3)
    assert result.stderr == "hmb: the topic nowhere cannot be read: there is no topic 'nowhere'\n"


LATE = """
from hmb.hailstorm import Bolt, MapOf, Sink, Spout, Sum, Topology, Tumbling
topology = Topology("late")
topology.spout("numbers", Spout("{topic}", lambda r: ("all", int(r.value)), event_time=lambda item: item[1]))
windows = Bolt.windowed(Tumbling(10, MapOf(Sum())), lambda item: item[1], lambda item: item[0], lambda item: 1)
topology.bolt("window", windows, after="numbers")
topology.sink("out", Sink(lambda item: None), after="window")
"""


def test_the_end_line_of_a_run_names_late_tuples(run: Hmb, servers: str, program: Path, tmp_path: Path) -> None:
    program.write_text(LATE.format(topic="late-numbers"))
    with hmb.Producer(servers) as producer:
        producer.send_many("late-numbers", [b"5", b"30", b"7", b"8"], partition=0)
    arguments = "-b", servers, "--until-end", "--store", str(tmp_path / "store")
    result = run("hailstorm", "run", f"{program}:topology", *arguments)
    assert result.stderr.splitlines()[-1].endswith("; late tuples left out since the first start: numbers 2")
    again = run("hailstorm", "run", f"{program}:topology", *arguments, "--json")
    assert json.loads(again.stdout)["late"] == {"numbers": 2}


def test_check_shows_the_event_times(run: Hmb, servers: str, program: Path) -> None:
    """`check` prints the range of the event times, so that a user notices a wrong unit.

    If `event_time` returns seconds instead of milliseconds, all times are in January 1970.
    """
    program.write_text(LATE.format(topic="event-times"))
    with hmb.Producer(servers) as producer:
        producer.send_many("event-times", [b"1790000000", b"1790003600"], partition=0)
    result = run("hailstorm", "check", f"{program}:topology", "-b", servers)
    assert result.stdout.endswith("; event times of numbers: 1970-01-21 17:13 to 1970-01-21 17:13\n")


DEAD = """
from hmb.hailstorm import Sink, Spout, Topology
topology = Topology("dead")
topology.spout("numbers", Spout("dead-numbers", lambda record: int(record.value), dead_letters="dead-letters"))
topology.sink("out", Sink(lambda item: None), after="numbers")
"""


def test_run_and_check_count_dead_letters(run: Hmb, servers: str, program: Path, tmp_path: Path) -> None:
    """A snapshot contains the number of dead letters (failed records), so the next run continues to count."""
    program.write_text(DEAD)
    arguments = f"{program}:topology", "-b", servers
    options = "--until-end", "--store", str(tmp_path / "store")
    for total in (2, 4):
        with hmb.Producer(servers) as producer:
            producer.send_many("dead-numbers", [b"5", b"five", b"six"], partition=0)
        result = run("hailstorm", "run", *arguments, *options)
        assert result.stderr.splitlines()[-1].endswith(f"; dead letters since the first start: numbers {total}")
    result = run("hailstorm", "check", *arguments)
    problem = "numbers 4, the first because `convert` raised ValueError for dead-numbers-0 at offset 1: invalid literal"
    assert f"dead: no problem found with 6 records; dead letters: {problem}" in result.stdout


def test_status_of_a_killed_run_names_the_store(run: Hmb, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as closed:
        (store / "registry.json").write_text(json.dumps(closed.getsockname()))
    result = run("hailstorm", "status", str(store), exit_code=4)
    assert f"uses {store} (the last run did not end normally); `hmb hailstorm snapshots" in result.stderr


def test_expired_records_are_an_error_until_the_user_allows_them(
    run: Hmb, servers: str, program: Path, tmp_path: Path
) -> None:
    topic = "test_expired_records_are_an_error_until_the_user_allows_them"
    with hmb.Admin(servers) as admin:
        admin.delete_records({TopicPartition(topic, 0): 2})
    arguments = f"{program}:topology", "-b", servers, "--until-end", "--store", str(tmp_path / "store")
    result = run("hailstorm", "run", *arguments, exit_code=1)
    problem = f"the records of {topic}-0 at offsets 0 to 1 expired before they were read"
    assert problem in result.stderr and "--allow-expired" in result.stderr
    allowed = run("hailstorm", "run", *arguments, "--allow-expired", "--json")
    assert json.loads(allowed.stdout)["state_sizes"]["count"] == 3


def test_a_damaged_snapshot_is_listed_with_exit_code_5(
    run: Hmb, servers: str, program: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    run("hailstorm", "run", f"{program}:topology", "-b", servers, "--until-end", "--store", str(store))
    victim = max(path for path in store.rglob("*") if "count-0" in str(path) and path.is_file())
    content = bytearray(victim.read_bytes())
    content[-1] ^= 1
    victim.write_bytes(content)
    result = run("hailstorm", "snapshots", str(store), exit_code=5)
    assert "DAMAGED" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (("snapshots", "nosuch"), 3, "nosuch does not exist"),
        (("status", "nosuch"), 4, "no topology that `hmb hailstorm run` started uses nosuch"),
        (("run", "nosuch.py:topology"), 1, "nosuch.py"),
        (("snapshots", __file__), 1, "is not a snapshot store: name a directory, or an SQLite file"),
        (("status", "store", "--registry", "127.0.0.1:1"), 4, "no registry answers at 127.0.0.1:1"),
        (("run", "x.py:topology", "--registry", "nohost"), 2, "'nohost' is not of the form host:port"),
    ],
)
def test_a_mistake_is_one_line(run: Hmb, arguments: tuple[str, ...], exit_code: int, message: str) -> None:
    result = run("hailstorm", *arguments, exit_code=exit_code)
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_status_shows_a_running_topology_and_a_signal_takes_a_last_snapshot(
    run: Hmb, servers: str, program: Path, tmp_path: Path, sent: signal.Signals
) -> None:
    store = tmp_path / "store"
    options = "-b", servers, "--store", str(store), "--grace-period", "60"
    runner = start("hailstorm", "run", f"{program}:topology", *options)
    try:
        master = wait_for_flow(run, store, runner)
        assert master["phase"] == "Flowing(None)"
        second = run("hailstorm", "run", f"{program}:topology", *options, exit_code=1)
        assert "another `hmb hailstorm run` uses the store" in second.stderr
        runner.send_signal(sent)
        _, errors = runner.communicate(timeout=60)
        assert runner.returncode == 0
        assert b"The topology takes a last snapshot" in errors
        assert b"states: count 4 entries" in errors
    finally:
        runner.kill()


def test_a_run_ends_when_nobody_reads_its_output(run: Hmb, servers: str, program: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    runner = start("hailstorm", "run", f"{program}:topology", "-b", servers, "--store", str(store))
    try:
        wait_for_flow(run, store, runner)
        assert runner.stdout is not None and runner.stderr is not None
        runner.stdout.close()
        assert runner.wait(60) == 0
        assert runner.stderr.read() == b""
    finally:
        runner.kill()


def wait_for_flow(run: Hmb, store: Path, runner: subprocess.Popen[bytes]) -> dict[str, object]:
    """Wait until `hmb hailstorm status` shows that six tuples have arrived.

    Return the master state that the command prints.
    """
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert runner.poll() is None
        if (store / "registry.json").exists():
            found = json.loads(run("hailstorm", "status", str(store), "--json").stdout)
            if found["processors"].get("count-0", {}).get("figures", {}).get("tuples") == 6:
                master: dict[str, object] = found["master"]
                return master
        time.sleep(0.1)
    pytest.fail("count-0 has not received the six words")


@pytest.mark.slow
def test_the_weather_example_with_kills_has_the_sum_of_the_data(
    run: Hmb, servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weather example does not lose or repeat a day, although its processes are killed.

    The rows of the database have the same sum of rain as the data set.
    """
    from hmb.cli import demo_data
    from hmb.cli.hailstorm.examples import weather

    database = tmp_path / "weather.db"
    monkeypatch.setattr(weather, "DATABASE", str(database))
    run("hailstorm", "demo", "weather", "-b", servers, "--kill", "--quiet")
    expected = sum(json.loads(event.value).get("precipitation_mm", 0) for event in demo_data.events())
    with sqlite3.connect(database) as connection:
        (found,) = connection.execute("SELECT sum(mm) FROM rain").fetchone()
    assert found == pytest.approx(expected)


def test_each_command_has_the_name_with_which_it_is_called() -> None:
    group = command
    assert isinstance(group, LazyGroup)
    context = click.Context(group)
    names = group.list_commands(context)
    commands = [group.get_command(context, name) for name in names]
    assert [each and each.name for each in commands] == names
    assert group.name == "hailstorm"
