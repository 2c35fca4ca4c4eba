"""Limits for the broker's file descriptors: how many are for log files, and how many are for connections.

The system limits how many file descriptors a process may have (RLIMIT_NOFILE). When a broker has used all of
them, it can neither accept a connection nor open a file. Therefore the broker raises the limit as far as the
system allows, and divides the descriptors into three groups:
- One third of the descriptors is for log files. The broker keeps recently used log files open
  (storage/files/virtual.py).
- RESERVE descriptors are for all other files and sockets, such as listeners, directories and state files.
- The remaining descriptors are for connections. Each connection needs two: one for its socket, and one for the
  log file from which it sends records. The connection's thread opens this file itself, because the storage
  layer can close its own descriptor of the file at any time.

For example, a process can have 1,024 descriptors. 341 of these descriptors are for log files, and 64 (RESERVE) are for
all other purposes. The remaining 619 descriptors are enough for 309 connections, because each connection needs two.
When 309 clients are connected, the server refuses further clients, as if `max.connections` were 309.
"""

from __future__ import annotations

import contextlib
import resource

ENOUGH = 10_240  # used if the system reports no limit: macOS reports none, but allows at most 10,240
RESERVE = 64


def raise_limit() -> int:
    """Raise the limit for descriptors of this process as far as the system allows. Return the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return ENOUGH
    # On Linux, `hard` is -1 if no hard limit exists. The condition `soft < limit` is then false for `hard`, so the loop
    # continues with ENOUGH.
    for limit in (hard, ENOUGH):
        if soft < limit:
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
                return limit
    return soft


def for_files(limit: int) -> int:
    """Return how many log files the broker may keep open if the process can have `limit` descriptors."""
    return limit // 3


def for_connections(limit: int) -> int:
    """Return how many clients may be connected at once if the process can have `limit` descriptors."""
    return max(1, (limit - for_files(limit) - RESERVE) // 2)
