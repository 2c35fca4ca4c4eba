"""The group: what it offers, and that offering costs nothing."""

import subprocess
import sys
from importlib.metadata import version

import pytest

from hmb.cli.main import COMMANDS
from tests.cli.conftest import Hmb


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_names_every_command(run: Hmb, option: str) -> None:
    output = run(option).stdout
    assert all(name in output and text in output for name, (_, text) in COMMANDS.items())


def test_help_imports_nothing_of_the_broker() -> None:
    program = """
import sys
from hmb.cli.main import main
main(["--help"], standalone_mode=False)
names = [name for name in sys.modules if not name.startswith("hmb.cli")]
heavy = [name for name in names if name.startswith(("hmb.", "rich", "cramjam")) and name != "hmb.defaults"]
sys.exit(f"imported: {heavy}" if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(run: Hmb, name: str) -> None:
    assert f"Usage: main {name} " in run(name, "-h").stdout


def test_version(run: Hmb) -> None:
    assert version("hmb") in run("--version").stdout


def test_a_mistyped_command(run: Hmb) -> None:
    assert "did you mean 'produce'?" in run("prodce", exit_code=2).stderr
    assert "there are broker, demo" in run("xyz", exit_code=2).stderr
