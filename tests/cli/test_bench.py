"""Tests of `hmb bench`: its help and its completion import no benchmark, and the command reports errors in one line."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hmb.cli.bench import COMMANDS, command
from hmb.cli.main import main


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_exists_and_has_help(name: str) -> None:
    result = CliRunner().invoke(main, ["bench", name, "--help"])
    assert result.exit_code == 0 and f"hmb bench {name}" in result.output.replace("main", "hmb", 1)
    found = command.get_command(click.Context(command), name)
    assert found is not None and found.name == name


def test_help_lists_the_commands_without_importing_them() -> None:
    shown = CliRunner().invoke(command, ["--help"]).output
    for name in COMMANDS:
        assert f"  {name} " in shown
    assert not imports_benchmarks("CliRunner().invoke(main, ['bench', '--help'])")


def test_completion_of_a_command_imports_none() -> None:
    """The completion of `hmb bench` imports no benchmark.

    Before a bug was fixed, the shell waited until all benchmarks were imported.
    """
    items = command.shell_complete(click.Context(command), "th")
    assert [item.value for item in items] == ["thesis", "threads"]
    assert not imports_benchmarks("command.shell_complete(click.Context(command), '')")


def imports_benchmarks(statement: str) -> bool:
    """Run a statement in a new process. Return whether the statement imports a module of hmb.bench."""
    program = (
        "import sys; import click; from click.testing import CliRunner; from hmb.cli.main import main; "
        f"from hmb.cli.bench import command; {statement}; print('hmb.bench' in sys.modules)"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout != "False\n"


def test_sigterm_ends_a_benchmark_as_ctrl_c_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """A benchmark that receives SIGTERM still runs its `finally` blocks, which stop its brokers."""
    stopped = []

    @click.command()
    def endless() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
            time.sleep(60)
        finally:
            stopped.append("the broker")

    monkeypatch.setattr(command, "get_command", lambda context, name: endless)
    before = signal.getsignal(signal.SIGTERM)
    assert CliRunner().invoke(command, ["produce"]).exit_code == 1
    assert stopped == ["the broker"]
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["produce", "--repeat", "0"], "0 is not in the range x>=1"),
        (["produce", "-b", "here:there"], "is not an address"),
        (["thesis", "--cells", "11"], "11 is not in the range 1<=x<=10"),
        (["groups", "--members", "3"], "200 groups need at least 298 members"),
        (["plot", "nothing.json"], "hmb: nothing.json: No such file or directory"),
        (["nonsense"], "No such command 'nonsense'"),
    ],
)
def test_a_wrong_option_is_named(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["bench", *arguments], env={"HOME": str(tmp_path)})
    assert result.exit_code in (2, 3)
    assert message in result.output


def test_a_folder_without_kafka_is_an_error_in_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["bench", "start", "--kafka-dir", str(tmp_path), "--results", str(tmp_path)])
    assert result.exit_code == 1 and result.stderr.startswith(f"hmb: no Kafka in {tmp_path}")


@pytest.mark.parametrize("name", ["produce", "consume", "latency", "clients"])
def test_a_broker_that_cannot_be_reached_is_code_4_as_everywhere(name: str, tmp_path: Path) -> None:
    arguments = ["bench", name, "-b", "127.0.0.1:1", "--results", str(tmp_path), "--repeat", "1"]
    result = CliRunner().invoke(main, arguments)
    assert "hmb: nobody listens on 127.0.0.1:1" in result.stderr, result.stderr
    assert result.exit_code == 4
