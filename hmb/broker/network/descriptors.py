"""The broker's file descriptors: their number, and their division between files and connections.

The system limits how many descriptors a process may have (RLIMIT_NOFILE). A broker that has used all of them can
neither accept a connection nor open a file, so every request fails. So it raises the limit as far as the system allows,
and then divides it:

- A third of the descriptors is for files of logs. The log layer keeps the recently used files open
  (storage/files/virtual.py).
- Each connection gets two descriptors: one for its socket, and one for the file from which its thread reads. The thread
  needs its own, because the log layer may close the file in the meantime.
- RESERVE descriptors are for listeners, directories and state files.

Example: of 1,024 descriptors 341 are for files, 64 are the reserve, and 309 clients may connect. The server refuses all
further connections, as it does for `max.connections`.
"""

from __future__ import annotations

import contextlib
import resource

ENOUGH = 10_240  # macOS reports no limit, but accepts at most this number
RESERVE = 64


def raise_limit() -> int:
    """Raise the limit of this process as far as the system allows; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return ENOUGH
    for limit in (hard, ENOUGH):  # An infinite limit is -1, so the comparison skips it.
        if soft < limit:
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
                return limit
    return soft


def for_files(limit: int) -> int:
    """Return how many files of logs may be open at the same time, if the process may have `limit` descriptors."""
    return limit // 3


def for_connections(limit: int) -> int:
    """Return how many clients may be connected at the same time, if the process may have `limit` descriptors."""
    return max(1, (limit - for_files(limit) - RESERVE) // 2)
