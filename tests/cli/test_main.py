"""Tests of `hmb` without a command: the help that it prints, and the modules that it imports."""

import subprocess
import sys
from importlib.metadata import version

import pytest

from hmb.cli.main import COMMANDS
from tests.cli.conftest import Hmb


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_names_every_command(run: Hmb, option: str) -> None:
    output = run(option).stdout
    words = " ".join(output.split())
    assert all(name in words and entry.help in words for name, entry in COMMANDS.items())


IMPORTS_OF_HELP = """
import sys
from hmb.cli.main import main
main({arguments}, standalone_mode=False)
names = [name for name in sys.modules if not name.startswith("hmb.cli")]
light = {{"hmb.defaults", "hmb.printable", "hmb.units", "hmb.protocol", "hmb.protocol.enums"}}
heavy = [name for name in names if name.startswith(("hmb.", "rich", "cramjam", "crc32c")) and name not in light]
sys.exit(f"imported: {{heavy}}" if heavy else 0)
"""


@pytest.mark.parametrize("words", [[], *([name] for name in COMMANDS if name != "bench")], ids=" ".join)
def test_help_imports_neither_the_broker_nor_the_client(words: list[str]) -> None:
    """`--help` must end within 0.15 s, even for a single command. So it imports neither the broker nor the client."""
    program = IMPORTS_OF_HELP.format(arguments=[*words, "--help"])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(run: Hmb, name: str) -> None:
    assert f"Usage: hmb {name} " in run(name, "-h").stdout


def test_version(run: Hmb) -> None:
    assert version("hmb") in run("--version").stdout


def test_a_mistyped_command(run: Hmb) -> None:
    assert "did you mean 'produce'?" in run("prodce", exit_code=2).stderr
    assert "the names are broker, demo" in run("xyz", exit_code=2).stderr


@pytest.mark.parametrize("words", [["consume"], ["topics", "create"], ["topics"], []], ids=" ".join)
def test_help_is_a_command_too(run: Hmb, words: list[str]) -> None:
    assert run("help", *words).stdout == run(*words, "--help").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["prodce"], "No such command 'prodce'; did you mean 'produce'?"),
        (["topics", "mak"], "hmb topics has no command 'mak'; the names are alter, create, delete"),
        (["topics", "list", "x"], "hmb topics list has no subcommands"),
    ],
)
def test_help_for_what_does_not_exist(run: Hmb, words: list[str], message: str) -> None:
    assert message in run("help", *words, exit_code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["consume"], "Missing argument 'TOPIC': name one or more, or choose --pattern (see `hmb consume --help`)"),
        (["consume", "t", "--frm"], "No such option '--frm'"),
        (["topics", "create", "t", "-p", "x"], "Invalid value for '-p' / '--partitions': 'x' is not a valid integer"),
        (["consume", "t", "-f", "%q"], "'%q', character 1: %q is not a letter of a format"),
        (["consume", "t", "--filter-key", "a("], "'a(' is not a regular expression: missing ), unterminated"),
        (["groups", "rset"], "No such command 'rset'"),
        (["decode", "--api", "Produc", "00"], "did you mean Produce?"),
    ],
)
def test_a_usage_error_is_one_line(run: Hmb, arguments: list[str], message: str) -> None:
    result = run(*arguments, exit_code=2)
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"hmb: {message}" if message[0].isupper() else "hmb: ")
    assert message in result.stderr
    assert result.stderr.endswith("--help`)\n")
