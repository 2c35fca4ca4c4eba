r"""HMB's performance producer: a program that sends messages as fast as it can, with the options of Kafka's tool.

This command is an example:
    python -m hmb.bench.load.perf_producer --topic t --num-records 1000000 --record-size 100 --throughput -1 \
        --command-property bootstrap.servers=127.0.0.1:9092 acks=1 batch.size=16384

The program creates one random message, and sends this message again and again. In the thesis on which HMB is based, a
console application did this task (chapter 10.2.2).

Each call of `Producer.send_many` contains at most 256 KiB of messages, or one larger message. From these messages, the
producer builds batches of `batch.size` bytes.

Like Kafka's tool, the program prints one line every five seconds, and a last line with percentiles. A latency is the
time from a call of `send_many` until the last record of this call is acknowledged.
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
from hmb.client.producing.settings import PRODUCER_SETTINGS
from hmb.units import MIB

from ..report.distribution import percentile
from .exit_code import exit_code_of

CALL_BYTES = 256 * 1024  # the largest total size (bytes) of the messages in one call of send_many
REPORT_SECONDS = 5.0
PERCENTILES = {"50th": 0.5, "95th": 0.95, "99th": 0.99, "99.9th": 0.999}


class Latencies:
    """The latencies of all acknowledged calls of `send_many`. The producer's sender threads add new latencies."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards all fields below
        self._all: list[float] = []  # latencies in ms
        self._reported = 0  # the number of latencies that the printed lines already include
        self.records = 0

    def add(self, started: float, records: int, _: object) -> None:
        with self._lock:
            self._all.append((time.perf_counter() - started) * 1000)
            self.records += records

    def unreported(self) -> list[float]:
        """Return the latencies that were added since the last call."""
        with self._lock:
            unreported, self._reported = self._all[self._reported :], len(self._all)
        return unreported

    def sorted(self) -> list[float]:
        with self._lock:
            return sorted(self._all)


def line(records: int, size: int, seconds: float, latencies: list[float]) -> str:
    """Return one line of results, in the format of kafka-producer-perf-test.sh.

    The program has sent `records` records, each with a value of `size` bytes, in `seconds` seconds. Each element of
    `latencies` is the time (ms) from a call of `send_many` to the acknowledgment of its records.
    """
    rate = records / seconds
    mean, maximum = sum(latencies) / len(latencies), max(latencies)
    speed = f"{rate:.1f} records/sec ({rate * size / MIB:.2f} MB/sec)"
    return f"{records} records sent, {speed}, {mean:.2f} ms avg latency, {maximum:.2f} ms max latency"


def produce(producer: hmb.Producer, topic: str, records: int, size: int, throughput: float) -> str:
    """Send records, print their rate and latency every REPORT_SECONDS seconds, and return a final summary."""
    message = os.urandom(size)
    records_per_call = max(1, CALL_BYTES // size)
    latencies = Latencies()
    started = reported = time.perf_counter()
    reported_records = 0
    for sent in range(0, records, records_per_call):
        count = min(records_per_call, records - sent)
        if throughput > 0 and (early := started + sent / throughput - time.perf_counter()) > 0:
            time.sleep(early)
        delivery = producer.send_many(topic, [message] * count)
        delivery.add_done_callback(partial(latencies.add, time.perf_counter(), count))
        now = time.perf_counter()
        if now - reported >= REPORT_SECONDS and (unreported := latencies.unreported()):
            print(line(latencies.records - reported_records, size, now - reported, unreported) + ".", flush=True)
            reported, reported_records = now, latencies.records
    producer.flush()
    seconds = time.perf_counter() - started
    ordered = latencies.sorted()
    percentiles = ", ".join(f"{int(percentile(ordered, share))} ms {name}" for name, share in PERCENTILES.items())
    return f"{line(latencies.records, size, seconds, ordered)}, {percentiles}."


def producer_of(properties: dict[str, str]) -> hmb.Producer:
    """Return a producer with the settings in `properties` (Kafka's names). Ignore settings that no benchmark uses."""
    settings: dict[str, Any] = {
        "acks": PRODUCER_SETTINGS["acks"].read(properties.get("acks", "all")),
        "compression": properties.get("compression.type", "none"),
        "idempotence": properties.get("enable.idempotence", "true") == "true",
        "linger_ms": float(properties.get("linger.ms", "0")),
        "batch_size": int(properties.get("batch.size", "16384")),
        "buffer_memory": int(properties.get("buffer.memory", str(32 * MIB))),
        "max_request_size": int(properties.get("max.request.size", str(MIB))),
    }
    return hmb.Producer(properties["bootstrap.servers"], **settings)


def main() -> int:
    parser = argparse.ArgumentParser(description="Send messages as fast as possible and print the rate.")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--num-records", type=int, required=True)
    parser.add_argument("--record-size", type=int, required=True, help="size of a message in bytes")
    parser.add_argument("--throughput", type=float, default=-1, help="messages/s; -1 sets no limit")
    parser.add_argument("--command-property", nargs="+", default=[], metavar="NAME=VALUE", help="producer settings")
    options = parser.parse_args()
    properties = dict(each.split("=", 1) for each in options.command_property)

    def work() -> None:
        with producer_of(properties) as producer:
            print(produce(producer, options.topic, options.num_records, options.record_size, options.throughput))

    return exit_code_of(work)


if __name__ == "__main__":
    sys.exit(main())
