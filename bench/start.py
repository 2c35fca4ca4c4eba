"""From a broker's start to its first acked record, and the memory it then holds: HMB beside Kafka 4.3.0.

    python -m hmb.bench.start
    python -m hmb.bench.start --repeat 9 --json

The clock starts with the process.  From then on a client tries to connect, every few ms, and sends one record to a
topic that does not exist yet, so that its creation is in the time.  What comes before a process can start is not:
Kafka's `kafka-storage format`, some 2 s, is done in advance.  Resident memory is VmRSS of /proc right after the ack
(Linux).  Both brokers start with an empty directory each time and take turns; medians count.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import time
from dataclasses import asdict, dataclass
from statistics import median

from hmb.client import Producer

from . import peers

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


def measure(repeat: int) -> dict[str, list[Start]]:
    """The starts of each broker, in turns."""
    starts: dict[str, list[Start]] = {}
    for _ in range(repeat):
        for kind in (peers.Hmb, peers.Kafka43):
            starts.setdefault(kind.name, []).append(start(kind()))
    return starts


def print_table(starts: dict[str, list[Start]]) -> None:
    print(f"{'median':<14}{'first ack':>10}{'from .. to':>18}{'resident':>12}")
    for name, of_broker in starts.items():
        seconds = sorted(each.seconds for each in of_broker)
        megabytes = median(each.resident_bytes for each in of_broker) / 1e6
        spread = f"{seconds[0]:.2f} .. {seconds[-1]:.2f} s"
        print(f"{name:<14}{median(seconds):>8.2f} s{spread:>18}{megabytes:>9.0f} MB")


def main() -> int:
    parser = argparse.ArgumentParser(description="From start to first acked record: HMB beside Kafka 4.3.0.")
    parser.add_argument("--repeat", type=int, default=5, help="starts of each broker")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        starts = measure(options.repeat)
    except (peers.PeerUnavailable, peers.PeerFailed) as problem:
        print(problem, file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps({name: [asdict(each) for each in of_broker] for name, of_broker in starts.items()}, indent=2))
    else:
        print_table(starts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
