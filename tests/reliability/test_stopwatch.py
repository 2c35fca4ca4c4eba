"""Tests of the stopwatch: it does not count the time in which a broker waits for a processor."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.reliability.stopwatch import own_seconds, waits_of
from tests.waiting import until


@pytest.mark.parametrize(
    ("wall", "cpu", "waited", "own"),
    [
        (3.0, 0.4, 0.0, 3.0),  # The broker waits for a lock, not for a processor. The result is the wall-clock time.
        (3.0, 0.4, 2.4, 0.6),  # The broker waits 2.4 s for a processor, so its own time is 3.0 s - 2.4 s = 0.6 s.
        (3.0, 2.0, 9.0, 2.0),  # Many threads wait 9.0 s in total. The result is the processor time, 2.0 s.
        (1.0, 1.8, 0.0, 1.0),  # Two processors work 1.8 s in total. The result is the wall-clock time, 1.0 s.
    ],
)
def test_the_own_time_has_no_waits_for_a_processor(wall: float, cpu: float, waited: float, own: float) -> None:
    assert own_seconds(wall, cpu, waited) == pytest.approx(own)


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the kernel does not provide schedstat")
def test_two_processes_on_one_processor_wait_for_it() -> None:
    with ExitStack() as stack:
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
        for process in busy:
            stack.enter_context(process)
            stack.callback(process.kill)
            os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(0))})
        for process in busy:
            until(lambda pid=process.pid: sum(waits_of(pid).values()) > 50_000_000, "a wait of 50 ms for a processor")
