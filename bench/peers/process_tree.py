"""What a process costs together with all that it started, by /proc (Linux): Spark's JVM and its Python workers."""

from __future__ import annotations

import os
from pathlib import Path

from .. import peers

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and its descendants so far, also of children that have ended."""
    return sum(_cpu(each) for each in (pid, *descendants(pid)))


def python_peak_bytes(pid: int) -> int:
    """The most memory that any Python below a process ever had; 0 if there is none."""
    return max((_peak(each) for each in descendants(pid) if _name(each).startswith("python")), default=0)


def descendants(pid: int) -> list[int]:
    """Children, their children, and so on."""
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
    """The fields of /proc/PID/stat from the third on; none of a process that has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _cpu(pid: int) -> float:
    """utime and stime, and both of the children that were waited for."""
    return sum(int(field) for field in _stat(pid)[11:15]) / TICKS


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


def _peak(pid: int) -> int:
    try:
        return peers.resident_bytes(pid, "VmHWM")
    except (OSError, peers.PeerFailed):
        return 0
