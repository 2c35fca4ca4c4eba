"""HMB's performance producer: the thesis' console application (ch. 10.2.2) with the options of Kafka's.

    python -m hmb.bench.load.perf_producer --topic t --num-records 1000000 --record-size 100 --throughput -1 \\
        --command-property bootstrap.servers=127.0.0.1:9092 acks=1 batch.size=16384

It makes one random message and gives it to `Producer.send_many` again and again, some at a time; the producer cuts
batches of batch.size.  It prints Kafka's lines: one every five seconds, and a last one with percentiles.  A latency is
that of a call of `send_many`, from the call to the acknowledgement of its last record.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from functools import partial
from typing import Any

import hmb
from hmb.protocol.errors import KafkaError

AT_ONCE = 256 * 1024  # bytes of messages in one call
REPORT_SECONDS = 5.0
MIB = 1024 * 1024
PERCENTILES = ((0.5, "50th"), (0.95, "95th"), (0.99, "99th"), (0.999, "99.9th"))


class Latencies:
    """Of the calls whose records have arrived; the producer's thread notes them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards all below
        self._all: list[float] = []  # ms, those reported first
        self._reported = 0
        self.records = 0

    def note(self, started: float, records: int, _: object) -> None:
        with self._lock:
            self._all.append((time.perf_counter() - started) * 1000)
            self.records += records

    def fresh(self) -> list[float]:
        """Those since the last report, or since the beginning."""
        with self._lock:
            fresh, self._reported = self._all[self._reported :], len(self._all)
        return fresh

    def sorted(self) -> list[float]:
        with self._lock:
            return sorted(self._all)


def line(records: int, size: int, seconds: float, latencies: list[float]) -> str:
    """Kafka's words for some records and their latencies in ms."""
    rate = records / seconds
    mean, most = sum(latencies) / len(latencies), max(latencies)
    speed = f"{rate:.1f} records/sec ({rate * size / MIB:.2f} MB/sec)"
    return f"{records} records sent, {speed}, {mean:.2f} ms avg latency, {most:.2f} ms max latency"


def percentiles(latencies: list[float]) -> str:
    values = [(latencies[min(int(share * len(latencies)), len(latencies) - 1)], name) for share, name in PERCENTILES]
    return ", ".join(f"{int(value)} ms {name}" for value, name in values)


def produce(producer: hmb.Producer, topic: str, records: int, size: int, throughput: float) -> str:
    """Send them all; the last line."""
    message = os.urandom(size)
    at_once = max(1, AT_ONCE // size)
    latencies = Latencies()
    started = reported = time.perf_counter()
    already = 0
    for sent in range(0, records, at_once):
        count = min(at_once, records - sent)
        if throughput > 0 and (early := started + sent / throughput - time.perf_counter()) > 0:
            time.sleep(early)
        delivery = producer.send_many(topic, [message] * count)
        delivery.add_done_callback(partial(latencies.note, time.perf_counter(), count))
        now = time.perf_counter()
        if now - reported >= REPORT_SECONDS and (fresh := latencies.fresh()):
            print(line(latencies.records - already, size, now - reported, fresh) + ".", flush=True)
            reported, already = now, latencies.records
    producer.flush()
    seconds = time.perf_counter() - started
    everything = latencies.sorted()
    return f"{line(latencies.records, size, seconds, everything)}, {percentiles(everything)}."


def producer_of(properties: dict[str, str]) -> hmb.Producer:
    """A producer from Kafka's names of its settings, as far as a benchmark sets them."""
    settings: dict[str, Any] = {
        "acks": {"all": -1}.get(properties.get("acks", "all")) or int(properties["acks"]),
        "compression": properties.get("compression.type", "none"),
        "idempotence": properties.get("enable.idempotence", "true") == "true",
        "linger_ms": float(properties.get("linger.ms", "0")),
        "batch_size": int(properties.get("batch.size", "16384")),
        "buffer_memory": int(properties.get("buffer.memory", str(32 * MIB))),
        "max_request_size": int(properties.get("max.request.size", str(MIB))),
    }
    return hmb.Producer(properties["bootstrap.servers"], **settings)


def main() -> int:
    parser = argparse.ArgumentParser(description="Send messages as fast as it goes, and say how fast that was.")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--num-records", type=int, required=True)
    parser.add_argument("--record-size", type=int, required=True, help="bytes")
    parser.add_argument("--throughput", type=float, default=-1, help="messages a second; -1: as fast as it goes")
    parser.add_argument("--command-property", nargs="+", default=[], metavar="NAME=VALUE", help="under Kafka's names")
    options = parser.parse_args()
    properties = dict(each.split("=", 1) for each in options.command_property)
    try:
        with producer_of(properties) as producer:
            print(produce(producer, options.topic, options.num_records, options.record_size, options.throughput))
    except (KafkaError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
