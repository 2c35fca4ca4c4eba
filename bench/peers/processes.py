"""Clients as processes of their own: what they print, and what they cost (CPU time, memory; by wait4)."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from .. import peers

RUN_SECONDS = 600.0


@dataclass(frozen=True)
class Finished:
    """A process that has ended well."""

    output: str
    cpu_seconds: float
    max_resident_bytes: int


def run(command: Sequence[str], what: str, timeout: float = RUN_SECONDS) -> Finished:
    """Run it to its end; PeerFailed with the end of what it said if that is not a good one."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
        watch = threading.Timer(timeout, process.kill)
        watch.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            watch.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        said = _text(output)
        if process.returncode:
            raise peers.PeerFailed(f"{what} ended with {process.returncode}:\n{(said + _text(errors))[-2000:]}")
    # ru_maxrss is in KiB on Linux
    return Finished(said, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
