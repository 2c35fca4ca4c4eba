"""The program of a worker process: `python -m hmb.hailstorm.runners`.

A worker process reads one line of JSON from its standard input. The line names the processors that the process has to
run. `reason` is the file descriptor of a pipe, through which the process can report why it ends:
    {"topology": "trending:topology", "processors": ["words-0", "count-0"], "registry": ["127.0.0.1", 41234],
     "store": "/path/of/snapshots", "settings": {...}, "reason": 5}

When the topology has ended, a worker process ends with exit code 0. If a processor crashes, its worker process
writes the reason into the pipe, and ends with exit code 1. The parent process then starts a new worker.

When the parent process ends, the standard input of each worker process is closed, and the worker process ends.
The standard output belongs to the user's code, for example a sink that prints.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading

from hmb.hailstorm.errors import HailstormError, can_pass
from hmb.hailstorm.reference import load_topology
from hmb.hailstorm.registry import RemoteRegistry
from hmb.hailstorm.runners.processes import ENDED_BY_PARENT, MAX_REASON
from hmb.hailstorm.runners.single import serve
from hmb.hailstorm.runners.worker import decoded_settings
from hmb.hailstorm.snapshots import open_store


def end_with_the_parent() -> None:
    """Start a thread that ends this process as soon as the parent process has ended.

    The standard input of this process is a pipe from the parent process. When the parent process ends, the pipe is
    closed. The thread waits until the pipe is closed, and then ends this process.
    """

    def wait() -> None:
        # The loop does not read from the object `sys.stdin`: a thread that reads from `sys.stdin` holds a lock. Python
        # needs this lock when the process ends.
        while os.read(0, 4096):
            pass
        os._exit(ENDED_BY_PARENT)

    threading.Thread(target=wait, name="hailstorm-parent", daemon=True).start()


def report(pipe: int, reason: str) -> None:
    """Report to the parent why this process ends. Send at most the first MAX_REASON bytes of `reason`."""
    os.write(pipe, reason.encode(errors="replace")[:MAX_REASON])


def main() -> int:
    """Read the names of processors from standard input, run these processors, and return the exit code."""
    # Ctrl-C sends SIGINT to the parent process and to all workers. A service manager can send SIGTERM to all of them.
    # The workers ignore both signals, because only the parent decides when the topology ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    logging.basicConfig(format=f"%(asctime)s worker {os.getpid()}: %(message)s")
    request = json.loads(sys.stdin.buffer.readline())
    end_with_the_parent()
    registry = RemoteRegistry(tuple(request["registry"]))
    try:
        topology, store = load_topology(request["topology"]), open_store(request["store"])
        serve(topology, request["processors"], decoded_settings(request["settings"]), store, registry)
    except HailstormError as error:
        report(request["reason"], str(error))
        return 1
    except Exception as error:
        report(request["reason"], f"{type(error).__name__}: {error}")
        if not can_pass(error):
            raise
        return 1
    finally:
        registry.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
