"""From a broker's start to its first acked record, and the memory it then holds: HMB beside Kafka 4.3.0.

    hmb bench start
    hmb bench start --repeat 9 --json

The clock starts with the process.  From then on a client tries to connect, every few ms, and sends one record to a
topic that does not exist yet, so that its creation is in the time.  What comes before a process can start is not:
Kafka's `kafka-storage format`, some 2 s, is done in advance.  Resident memory is VmRSS of /proc right after the ack
(Linux).  Both brokers start with an empty directory each time and take turns; medians count.
"""

from __future__ import annotations

import argparse
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from hmb.client import Producer

from .. import peers
from ..peers.targets import kinds_here
from ..progress import Progress
from ..report.samples import Sample, Samples
from ..report.tables import Table, by, median, spread, text
from ..report.turns import in_turns
from ..suite import add_suite_options, run

TOPIC = "first"


@dataclass(frozen=True)
class Start:
    """One start of a broker."""

    seconds: float
    resident_bytes: int


def start(broker: peers.Peer) -> Start:
    """Start the broker, and stop it after its first ack."""
    broker.prepare()
    try:
        started = time.perf_counter()
        broker.spawn()
        await_port(broker)
        with Producer(broker.bootstrap, acks=1, linger_ms=0) as producer:
            producer.send(TOPIC, b"x").result(timeout=peers.START_SECONDS)
        return Start(time.perf_counter() - started, peers.resident_bytes(broker.pid))
    finally:
        broker.stop()
        broker.remove()


def await_port(broker: peers.Peer) -> None:
    deadline = time.monotonic() + peers.START_SECONDS
    while True:
        try:
            return socket.create_connection((peers.HOST, broker.port), timeout=1).close()
        except OSError as refused:
            if time.monotonic() > deadline:
                raise peers.PeerFailed(f"{broker.name} did not start; its log ends:\n{broker.log_tail()}") from refused
            time.sleep(0.002)


def table(options: argparse.Namespace, _: ExitStack, samples: Samples) -> Iterator[str]:
    kinds = kinds_here()
    progress = Progress(len(kinds) * options.repeat)
    for turn, kind in in_turns(kinds, options.repeat):
        progress.step(f"turn {turn + 1}, {kind.name}")
        started = start(kind())
        figures = {"first_ack_seconds": started.seconds, "broker_resident_bytes": float(started.resident_bytes)}
        samples.add(Sample("start", kind.name, "HMB", turn, {}, figures))
    progress.end()
    yield from text(tables(samples.taken))


def tables(samples: Sequence[Sample]) -> list[Table]:
    rows = [["broker", "seconds to the first ack", "resident MB"]]
    for name, runs in by(samples, lambda run: run.broker).items():
        seconds = spread(runs, "first_ack_seconds")
        rows.append([name, str(seconds), median(runs, "broker_resident_bytes", 1e6, ",.0f")])
    return [Table("From the start of the process to the first acked record, and the memory it then holds", rows)]


def main() -> int:
    parser = argparse.ArgumentParser(description="From start to first acked record: HMB beside Kafka 4.3.0.")
    add_suite_options(parser)
    return run("start", parser.parse_args(), table)


if __name__ == "__main__":
    sys.exit(main())
