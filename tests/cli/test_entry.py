"""Tests of Ctrl-C before a command runs, and after the command has ended."""

import signal
import subprocess
import sys

STOPPED_WHILE_IMPORTING = """
import os, signal, sys
class Stop:
    def find_spec(self, name, path, target=None):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Stop())
{first}
from hmb.cli.entry import run
sys.argv = ["hmb", "--version"]
run()
"""


def interrupted(first: str) -> "subprocess.CompletedProcess[str]":
    program = STOPPED_WHILE_IMPORTING.format(first=first)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)


def test_ctrl_c_while_modules_are_imported_prints_no_traceback() -> None:
    """Ctrl-C while Python imports the modules of `hmb` prints no traceback.

    Before a bug was fixed, Ctrl-C during the first 50 ms printed one.
    """
    done = interrupted("")
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_ctrl_c_that_is_ignored_stays_ignored() -> None:
    done = interrupted("signal.signal(signal.SIGINT, signal.SIG_IGN)")
    assert done.stderr == ""
    assert done.returncode == 0


def test_the_console_script_imports_little_before_it_handles_ctrl_c() -> None:
    """The console script imports only three modules before the function `run` sets the action for Ctrl-C.

    Each import delays the function `run`. If a user presses Ctrl-C before `run` has set the action, Python can print
    a traceback.
    """
    program = "import importlib, sys; before = set(sys.modules); import hmb.cli.entry; print(set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert eval(done.stdout) == {"hmb", "hmb.cli", "hmb.cli.entry"}


def test_ctrl_c_while_python_cleans_up_prints_no_traceback() -> None:
    at_exit = "import atexit; atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))"
    done = interrupted(f"sys.meta_path.pop(0); {at_exit}")
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
