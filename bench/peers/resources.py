"""Reads CPU time and memory of processes from `/proc` (Linux).

The kernel counts CPU time in ticks of 10 ms, so a measurement should last several seconds. The field `VmRSS` is
the RAM that a process uses now, and `VmHWM` is the highest value of `VmRSS` so far. Both values include the
parts of memory-mapped files that are in RAM, but no other part of the kernel's page cache.

Spark starts a JVM, and the JVM starts Python workers. The functions with `tree` in their names therefore measure a
process together with its descendants: its child processes, the children of these processes, and so on.
"""

from __future__ import annotations

import os
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Return the CPU time (s) that all threads of a process have used until now, or 0 if the process has ended."""
    return sum(map(int, _stat(pid)[11:13])) / TICKS_PER_SECOND  # the fields utime and stime


def tree_cpu_seconds(pid: int) -> float:
    """Return the CPU time (s) that a process, its descendants and its finished children have used until now."""
    fields = [_stat(each)[11:15] for each in (pid, *descendants(pid))]  # the fields utime, stime, cutime and cstime
    return sum(int(ticks) for process in fields for ticks in process) / TICKS_PER_SECOND


def resident_bytes(pid: int, field: str = "VmRSS") -> int:
    """Return the present resident memory of a process in bytes, or its peak if `field` is `VmHWM`.

    Raises OSError if the process no longer exists.
    """
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    # A zombie (an ended process whose parent has not called `wait` yet) has no memory sizes, so the sum is 0.
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def tree_python_peak_bytes(pid: int) -> int:
    """Return the peak memory (bytes) of the largest Python process among `pid`'s descendants, or 0 if none exists."""
    return max((_peak(each) for each in descendants(pid) if _name(each).startswith("python")), default=0)


def descendants(pid: int) -> list[int]:
    """Return the process ids of the children of a process, of their children, and so on."""
    children: dict[int, list[int]] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit() and (fields := _stat(int(each.name))):
            children.setdefault(int(fields[1]), []).append(int(each.name))
    found, queue = [], [pid]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def _stat(pid: int) -> list[str]:
    """Return the fields of `/proc/PID/stat` from the third field on. Return an empty list if the process has ended.

    The function skips the second field, the name of the program. This name may contain spaces, which also separate the
    fields.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


def _peak(pid: int) -> int:
    try:
        return resident_bytes(pid, "VmHWM")
    except OSError:
        return 0
