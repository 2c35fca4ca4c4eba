"""Run a client program in a process of its own, and return its output, its CPU time and its memory.

A benchmark starts each client in a separate process. If the client ran inside the benchmark's process, its
threads would wait for the same interpreter lock as the threads of the benchmark.

When the client's process ends, the system call `wait4` returns the CPU time and the peak memory of that
process. These values do not include the benchmark.
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
    """The output, the CPU time and the peak memory of a program that has ended with exit code 0."""

    output: str
    cpu_seconds: float  # the CPU time of all threads of the program and of its finished child processes
    max_resident_bytes: int

    @property
    def costs(self) -> dict[str, float]:
        """The CPU time (seconds) and the peak memory (bytes), under the names that the stored results use.

        The names begin with `client_`, because the program is the client in a benchmark.
        """
        return {"client_cpu_seconds": self.cpu_seconds, "client_max_bytes": float(self.max_resident_bytes)}


def run_program(command: Sequence[str], name: str, timeout: float = RUN_SECONDS) -> Finished:
    """Run a program and wait until it ends. Kill it if it still runs after `timeout` seconds.

    Raises PeerFailed if the exit code is not 0. The error message contains `name` and the last part of the output.
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
