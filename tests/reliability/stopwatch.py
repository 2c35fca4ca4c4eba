"""Measures how long a broker takes for a request. The time in which the broker waits for a processor does not count.

Problem: a broker must answer each request within a second. On a machine that is busy with other programs, a correct
broker takes longer, because its threads wait for a processor. The wall-clock time then shows how busy the machine is.

Idea: the kernel measures how long each thread waits for a processor (the file `schedstat` of the thread in `/proc`).
The stopwatch subtracts these waits of the broker's and the client's threads from the wall-clock time. The result is the
broker's own time. It still contains the time in which the broker waits for a lock, a disk or a condition.

For example, a response takes 3.0 s. The stopwatch subtracts the 2.4 s in which the broker waited for a processor:

    wall-clock time    3.0 s  =  work 0.4 s  +  wait for a lock 0.2 s  +  wait for a processor 2.4 s
    broker's own time  0.6 s  =  work 0.4 s  +  wait for a lock 0.2 s

Limits: several threads can wait for a processor at the same time. The stopwatch subtracts the waits of all of them, so
the difference can be too small, and even negative. The stopwatch therefore returns at least the processor time that the
broker has used. If the kernel does not provide the file `schedstat`, the stopwatch returns the wall-clock time.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from hmb.bench.peers import cpu_seconds

Waits = dict[str, int]  # the id of each thread -> the ns for which the thread has waited for a processor


def waits_of(pid: int) -> Waits:
    """Return how many ns each thread of a process has waited for a processor since the thread started."""
    waits = Waits()
    with contextlib.suppress(OSError):  # The process has ended.
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):  # The thread has ended, or the kernel does not provide this file.
                waits[thread.name] = int((thread / "schedstat").read_text().split()[1])
    return waits


class Stopwatch:
    """A stopwatch for a broker in another process. The stopwatch starts when it is created."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._waits = {each: waits_of(each) for each in (pid, os.getpid())}
        self._cpu = cpu_seconds(pid)
        self._begin = time.monotonic()

    def wall_seconds(self) -> float:
        return time.monotonic() - self._begin

    def own_seconds(self) -> float:
        """Return the broker's own time until now: the wall-clock time minus the waits for a processor."""
        wall = self.wall_seconds()
        return own_seconds(wall, cpu_seconds(self._pid) - self._cpu, self._waited())

    def _waited(self) -> float:
        """Return how many seconds all threads together have waited for a processor since the stopwatch started."""
        return sum(
            now - before.get(thread, 0)
            for pid, before in self._waits.items()
            for thread, now in waits_of(pid).items()
        ) / 1e9  # fmt: skip


def own_seconds(wall: float, cpu: float, waited: float) -> float:
    """Return a broker's own time: the wall-clock time `wall` minus `waited`, the sum of the waits for a processor.

    The result is at least the processor time `cpu`, but never more than `wall`. The time `cpu` can be greater than
    `wall`, because the broker can use several processors at the same time.
    """
    return min(wall, max(cpu, wall - waited))
