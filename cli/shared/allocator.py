"""Settings of the C library's memory allocator (glibc) for the process of a broker.

By default glibc gives up to eight arenas per processor to the threads of a process. Each arena keeps the memory of the
largest request that one of its threads has handled. A broker has one thread for each connection, so a few arrays of
16 MB in different threads can occupy 150 MB long after their requests.

Python's interpreter lock lets one thread allocate at a time, so a single arena costs nothing. After 124,000 mutated
requests (tests/reliability/hostile.py), the resident memory is 102 MB by default, 79 MB with one arena, and 61 MB when
large blocks also go back to the operating system.

Source: mallopt(3).
"""

from __future__ import annotations

import contextlib
import ctypes

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # glibc's numbers of its settings
LARGE_BLOCK = 4 << 20  # bytes; more than what recovery and compaction read at once, which is allocated again and again


def use_one_arena() -> None:
    """Let the process allocate from one arena, and give back large blocks. Do nothing without glibc."""
    with contextlib.suppress(AttributeError, OSError):  # Other C libraries have no mallopt.
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_ARENA_MAX, 1)
        mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK)
        mallopt(M_TRIM_THRESHOLD, LARGE_BLOCK)
