"""The runners: the threads, sockets and timers that drive the state machines of a topology.

The state machines of `hmb.hailstorm.processors` make all decisions, but they have no threads and no
connections. A runner provides both. It gives each processor a thread with a mailbox, reads the topics, carries
tuples from processor to processor, and saves snapshots in the background.

Each processor writes its report into the registry (`living/*`), and reads the negotiator's decision (`master`).
A separate thread saves the state of the processor. In this drawing of one processor, the arrows show where the
data goes:
                        registry:  master, living/*
                          |  decision     ^  report
                          v               |
      sender --> [ mailbox | thread with the state machine | outbox ] --> mailbox or socket of the receiver
                          ^               |
                          | result        v  state
                        thread that saves the state, snapshot store

A mailbox holds a limited number of payloads. If the mailbox of a receiver is full, the sender waits. A slow sink
therefore slows down the spouts, and the memory that payloads use is limited. The waiting senders cannot cause a
deadlock, because the topology has no cycle. A new epoch or the end of the run interrupts a sender that waits.

Processors send payloads in large batches, because a large batch costs little more than a small one. The sender
and the receiver run in different threads, and Python runs one thread of a process at a time. So each batch
costs two or three switches between threads. Each batch for another process also costs two system calls. To keep
the number of batches small, a spout takes up to 2,000 records at once.

A processor can run in a thread, in another process or on another machine. These calls, shown without some of
their arguments, run a topology:
    run(topology)                  runs all processors as threads of this process
    run(topology, workers=4)       runs the processors in 4 processes on this machine; restarts a crashed process
    serve(topology, ["count-0"])   runs only the processor count-0, in this process; the user starts the others
    on_spark(topology, spark)      runs the same topology as queries of Spark's Structured Streaming

Read in this order:
- `transport/`          the mailboxes of the processors, and the transport of payloads to them
- `processor_thread`    the loop of one processor
- `negotiator_thread`   the loop of the negotiator
- `settings`            the options of a run, and its result
- `base`, `threads`     start a topology, start crashed processors again, return the result
- `processes`, `worker` the same with processes instead of threads; `__main__` is the program of a worker process
- `single`              the function `serve`: runs some processors here, and other processes run the rest
- `restarts`            ends a topology whose processors crash again and again
- `start_deadline`      replaces workers whose processors do not register in time
- `topics`              the partitions of the topics that the spouts read
- `figures`             the numbers in a processor's report
- `warning_interval`    limits warnings that could repeat for each batch of records
- `spark/`              the same topology on Spark

Source: Hailstorm, chapter 5, "Implementation Details".
"""

from __future__ import annotations

import tempfile
from typing import Any

from hmb.defaults import GRACE_PERIOD
from hmb.hailstorm.negotiator import NegotiatorSettings
from hmb.hailstorm.runners.base import Runner
from hmb.hailstorm.runners.processes import ProcessRunner
from hmb.hailstorm.runners.settings import RunResult, RunSettings, Until
from hmb.hailstorm.runners.threads import ThreadRunner
from hmb.hailstorm.snapshots import DirectorySnapshotStore, MemorySnapshotStore, SnapshotStore
from hmb.hailstorm.topology import Topology

__all__ = ["ProcessRunner", "RunResult", "RunSettings", "Runner", "ThreadRunner", "run", "start"]


def start(
    topology: Topology,
    bootstrap_servers: str,
    store: SnapshotStore | None = None,
    *,
    workers: int | None = None,
    until: Until = None,
    grace_period: float | None = GRACE_PERIOD,
    **options: Any,
) -> Runner:
    """Start a topology, and return its runner. Use the runner in a `with` block.

    - `store`: where to save snapshots. If it is None, a later start finds no snapshots: they are saved in memory
      or, with `workers`, in a new temporary directory.
    - `workers`: the number of worker processes. None means threads of this process.
    - `until`: with "end", the topology ends after the records that exist now.
    - `grace_period`: how long (s) records flow between two snapshots. None means one snapshot, at the end.
    - `options`: other fields of `RunSettings`.

    Raises TopologyError if the topology cannot run.
    """
    settings = RunSettings(bootstrap_servers, until, NegotiatorSettings(grace_period), **options)
    if workers is None:
        return ThreadRunner(topology, settings, store or MemorySnapshotStore())
    if store is None:
        store = DirectorySnapshotStore(tempfile.mkdtemp(prefix="hailstorm-"))
    return ProcessRunner(topology, settings, store, workers)


def run(topology: Topology, bootstrap_servers: str, store: SnapshotStore | None = None, **options: Any) -> RunResult:
    """Run a topology until it ends, and return the result. The arguments are the same as those of `start`.

    The first Ctrl-C makes the topology take a last snapshot and end. A second Ctrl-C ends the topology at once. Raises
    HailstormError if the topology ends with an error.
    """
    with start(topology, bootstrap_servers, store, **options) as runner:
        try:
            return runner.wait()
        except KeyboardInterrupt:
            return runner.stop()
