"""The performance producers: Kafka's own of two generations, and HMB's (perf_producer.py); each a process of its own.

All are told the same: a topic, how many messages of what size, acks=1, the batch size, no linger, no idempotence,
buffer.memory 67108864, as fast as it goes.  All end with the same line, Kafka's:

    1500000 records sent, 362144.0 records/sec (34.54 MB/sec), 412.21 ms avg latency, 701.00 ms max latency, 415 ms
    50th, 590 ms 95th, 640 ms 99th, 690 ms 99.9th.

in which a MB has 1048576 bytes.  Latency is from `send` to the acknowledgement; a producer that sends as fast as it can
waits for its own buffer most of that time.
"""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass

from .. import peers
from ..peers import processes
from ..thesis.cells import Cell

BUFFER_MEMORY = 67_108_864
MAX_REQUEST_SIZE = 2_097_152
PERCENTILES = {"50th": "p50_ms", "95th": "p95_ms", "99th": "p99_ms", "99.9th": "p999_ms"}
_LAST_LINE = re.compile(
    r"(?P<records>\d+) records sent, (?P<rate>[\d.]+) records/sec.*?"
    r"(?P<avg>[\d.]+) ms avg latency, (?P<max>[\d.]+) ms max latency(?P<percentiles>.*50th.*)"
)


@dataclass(frozen=True)
class Run:
    """What a performance producer said at its end, and what it cost."""

    records: int
    figures: dict[str, float]  # records_per_second, avg_ms, max_ms, p50_ms ..., client_cpu_seconds, client_max_bytes


class PerfProducer(ABC):
    """One of the producers."""

    name: str

    @abstractmethod
    def command(self, bootstrap: str, topic: str, cell: Cell) -> list[str]:
        """The command line that sends a cell's messages."""

    def run(self, bootstrap: str, topic: str, cell: Cell) -> Run:
        """One run; PeerFailed if it does not end well, PeerUnavailable if what it needs is not installed."""
        done = processes.run(self.command(bootstrap, topic, cell), f"the producer of {self.name}")
        parsed = last_line(done.output)
        if parsed is None:
            raise peers.PeerFailed(f"the producer of {self.name} did not come to its end:\n{done.output[-2000:]}")
        costs = {"client_cpu_seconds": done.cpu_seconds, "client_max_bytes": float(done.max_resident_bytes)}
        return Run(parsed.records, {**parsed.figures, **costs})


class HmbProducer(PerfProducer):
    name = "HMB"

    def command(self, bootstrap: str, topic: str, cell: Cell) -> list[str]:
        program = [sys.executable, "-m", "hmb.bench.load.perf_producer"]
        return [*program, *_options(topic, cell), *_settings(bootstrap, cell)]


class Kafka43Producer(PerfProducer):
    name = "Kafka 4.3.0"

    def command(self, bootstrap: str, topic: str, cell: Cell) -> list[str]:
        arguments = [*_options(topic, cell), *_settings(bootstrap, cell)]
        main_class = "org.apache.kafka.tools.ProducerPerformance"
        return peers.java(peers.kafka_43_jars(), main_class, *arguments, options=["-Xmx512M", "-XX:+UseG1GC"])


class Kafka082Producer(PerfProducer):
    """The tool that the thesis ran; this client knows neither linger of its own nor idempotence."""

    name = "Kafka 0.8.2.2"

    def command(self, bootstrap: str, topic: str, cell: Cell) -> list[str]:
        settings = ["acks=1", f"bootstrap.servers={bootstrap}", f"buffer.memory={BUFFER_MEMORY}"]
        arguments = [topic, str(cell.records), str(cell.message), "-1", *settings, f"batch.size={cell.batch}"]
        main_class = "org.apache.kafka.clients.tools.ProducerPerformance"
        return peers.java(peers.kafka_082_jars(), main_class, *arguments, options=["-Xmx512M"])


def _options(topic: str, cell: Cell) -> list[str]:
    sizes = ["--num-records", str(cell.records), "--record-size", str(cell.message)]
    return ["--topic", topic, *sizes, "--throughput", "-1"]


def _settings(bootstrap: str, cell: Cell) -> list[str]:
    settings = {
        "bootstrap.servers": bootstrap,
        "acks": 1,
        "batch.size": cell.batch,
        "linger.ms": 0,
        "enable.idempotence": "false",
        "buffer.memory": BUFFER_MEMORY,
        "max.request.size": MAX_REQUEST_SIZE,
    }
    return ["--command-property", *(f"{name}={value}" for name, value in settings.items())]


def last_line(output: str) -> Run | None:
    """What the last line says, the only one with percentiles; None without it."""
    found = _LAST_LINE.search(output)
    if found is None:
        return None
    figures = {"records_per_second": float(found["rate"]), "avg_ms": float(found["avg"]), "max_ms": float(found["max"])}
    for value, percentile in re.findall(r"([\d.]+) ms ([\d.]+th)", found["percentiles"]):
        figures[PERCENTILES[percentile]] = float(value)
    return Run(int(found["records"]), figures)
