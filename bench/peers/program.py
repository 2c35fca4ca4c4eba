"""Client programs as processes of their own: their output and their costs.

A client that ran in the process of the benchmark would share its interpreter lock and its memory. Each client therefore
is a process that prints its figures. `wait4` reports the CPU time and the peak memory of exactly that process.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from ..errors import PeerFailed

RUN_SECONDS = 600.0


@dataclass(frozen=True)
class Finished:
    """A program that has ended with exit code 0."""

    output: str
    cpu_seconds: float  # CPU seconds of all threads of the program, and of its children that have ended
    max_resident_bytes: int

    @property
    def costs(self) -> dict[str, float]:
        """The costs as figures of a sample."""
        return {"client_cpu_seconds": self.cpu_seconds, "client_max_bytes": float(self.max_resident_bytes)}


def run_program(command: Sequence[str], name: str, timeout: float = RUN_SECONDS) -> Finished:
    """Run a program to its end; kill it after `timeout` seconds.

    Raises PeerFailed with `name` and the end of the program's output if its exit code is not 0.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
        deadline = threading.Timer(timeout, process.kill)
        deadline.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            deadline.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        text = _content(output)
        if process.returncode:
            end = (text + _content(errors))[-2000:]
            raise PeerFailed(f"{name} ended with exit code {process.returncode}; its output ends:\n{end}")
    return Finished(text, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)  # Linux reports ru_maxrss in KiB.


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
