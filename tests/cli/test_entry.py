"""Ctrl-C before there is a command that could catch it."""

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


def test_ctrl_c_while_modules_are_imported_is_no_traceback() -> None:
    """In the first 50 ms it printed one."""
    done = interrupted("")
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_ctrl_c_that_is_ignored_stays_ignored() -> None:
    done = interrupted("signal.signal(signal.SIGINT, signal.SIG_IGN)")
    assert done.stderr == ""
    assert done.returncode == 0
