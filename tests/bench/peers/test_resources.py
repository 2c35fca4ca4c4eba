"""Tests of the functions that return the CPU time and the memory of a process and of its descendants."""

from __future__ import annotations

import os
import subprocess
import sys

from hmb.bench.peers.resources import cpu_seconds, descendants, tree_cpu_seconds, tree_python_peak_bytes

# The child works for 0.1 s of CPU time before it reports, because the kernel counts CPU time in steps of 0.01 s.
CHILD = """
import sys, time
while time.process_time() < 0.1:
    pass
print("up", flush=True)
sys.stdin.read()
"""
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}])"


def test_children_of_children_count() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        parent.stdout.readline()
        found = descendants(parent.pid)
        assert len(found) == 1 and found[0] != parent.pid
        assert tree_cpu_seconds(parent.pid) >= tree_cpu_seconds(found[0]) > 0
        assert set(found) < set(descendants(os.getpid()))
        assert tree_python_peak_bytes(parent.pid) > 1_000_000
        parent.stdin.close()


def test_a_process_that_has_ended_costs_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert descendants(ended.pid) == [] and tree_cpu_seconds(ended.pid) == 0 and tree_python_peak_bytes(ended.pid) == 0


def test_the_cpu_time_of_a_process_grows() -> None:
    before = cpu_seconds(os.getpid())
    while cpu_seconds(os.getpid()) == before:
        pass
    assert 0 <= before < cpu_seconds(os.getpid())
