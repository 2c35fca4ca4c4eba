"""How much memory HMB's producer takes while it sends 10 GB: its buffer and little else.

    python -m hmb.bench.scenarios.client_memory                        # 10 GB of records of 100 B, send_many
    python -m hmb.bench.scenarios.client_memory --bytes 1000000000 --how send

The broker is a process of its own that keeps no more than some hundred megabytes; the producer is in this process, as
fast as it goes, with buffer.memory of 32 MB.  What counts is the most resident memory that the process ever had
(VmHWM of /proc, Linux) less what it had right before the producer was made.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import hmb

from .. import peers
from ..peers import topics
from ..suite import at_least_one

TOPIC = "hmb-bench-memory"
BUFFER_MEMORY = 32 * 1024 * 1024
GOAL = BUFFER_MEMORY + 30_000_000
AT_ONCE = 1_000  # records in one call of send_many
KEEP_LITTLE = {
    "log.retention.bytes": "268435456",
    "log.segment.bytes": "67108864",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "0",
}


def produce(producer: hmb.Producer, how: str, records: int, size: int) -> None:
    value = os.urandom(size)
    if how == "send":
        for _ in range(records):
            producer.send(TOPIC, value)
    else:
        values = [value] * AT_ONCE
        for first in range(0, records, AT_ONCE):
            producer.send_many(TOPIC, values[: records - first])


def measure(broker: peers.Peer, how: str, records: int, size: int) -> int:
    """Bytes of memory, beyond what there was before."""
    topics.create(broker.bootstrap, TOPIC)
    before = peers.resident_bytes(os.getpid())
    with hmb.Producer(broker.bootstrap, acks=1, buffer_memory=BUFFER_MEMORY) as producer:
        produce(producer, how, records, size)
        producer.flush()
        most = peers.resident_bytes(os.getpid(), "VmHWM")
    if (end := topics.end_offset(broker.bootstrap, TOPIC)) != records:
        raise peers.PeerFailed(f"a log of {end} records, not {records}")
    return most - before


def main() -> int:
    parser = argparse.ArgumentParser(description="Memory of a producer that sends 10 GB.")
    parser.add_argument("--bytes", type=at_least_one, default=10**10, help="of values in all (default: 10 GB)")
    parser.add_argument("--record-size", type=at_least_one, default=100)
    parser.add_argument("--how", choices=["send", "send_many"], default="send_many")
    options = parser.parse_args()
    started = time.perf_counter()
    try:
        with peers.Hmb(config=KEEP_LITTLE) as broker:
            taken = measure(broker, options.how, max(1, options.bytes // options.record_size), options.record_size)
    except peers.PeerFailed as problem:
        print(f"hmb: {problem}", file=sys.stderr)
        return 1
    verdict = "met" if taken <= GOAL else "MISSED"
    print(
        f"{options.how}: {options.bytes / 1e9:g} GB in {time.perf_counter() - started:.0f} s; "
        f"{taken / 1e6:.1f} MB of memory, {BUFFER_MEMORY / 1e6:.1f} MB of them its buffer; "
        f"goal {GOAL / 1e6:.1f} MB at most: {verdict}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
