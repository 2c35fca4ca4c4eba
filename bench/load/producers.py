"""The performance producers: the tools of Kafka 4.3.0 and Kafka 0.8.2.2, and HMB's `perf_producer`.

Each producer runs in a process of its own. All producers have the same settings: acks=1, the same batch size,
linger 0, no idempotence, buffer.memory 67108864, and no rate limit. The last line that a producer prints contains
its throughput, and the average, the maximum and the percentiles of the latency. All producers use the same format.
For example (here broken into two lines):
    1500000 records sent, 362144.0 records/sec (34.54 MB/sec), 412.21 ms avg latency, 701.00 ms max latency, 415 ms
    50th, 590 ms 95th, 640 ms 99th, 690 ms 99.9th.

In the last line of a producer's output, one MB is 1,048,576 bytes.

The latency of a record is the time from the call of `send` until the broker acknowledges the record. All producers call
`send` as often as they can, so a record waits for a long time in the producer's buffer. The latency therefore says
little about the speed of the broker.
"""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from .. import peers
from ..peers import topics
from ..peers.chosen import MeasuredBroker
from ..peers.empty_broker import EmptyBroker
from ..peers.program import run_program
from .workload import NO_SECURITY, Workload

BUFFER_MEMORY = 67_108_864
MAX_REQUEST_SIZE = 2_097_152
PERCENTILES = {"50th": "p50_ms", "95th": "p95_ms", "99th": "p99_ms", "99.9th": "p999_ms"}
_LAST_LINE = re.compile(
    r"(?P<records>\d+) records sent, (?P<rate>[\d.]+) records/sec.*?"
    r"(?P<avg>[\d.]+) ms avg latency, (?P<max>[\d.]+) ms max latency(?P<percentiles>.*50th.*)"
)


@dataclass(frozen=True)
class ProducerReport:
    """The results of one run: the figures that the producer printed, and the CPU time and memory of its process."""

    records: int
    figures: dict[str, float]  # records_per_second, avg_ms, max_ms, p50_ms ..., client_cpu_seconds, client_max_bytes


class PerfProducer(ABC):
    """A program that sends messages as fast as it can."""

    name: str

    @abstractmethod
    def command(self, bootstrap: str, topic: str, workload: Workload) -> list[str]:
        """Return the command line of a producer that sends the messages of a workload."""

    def run(self, bootstrap: str, topic: str, workload: Workload) -> ProducerReport:
        """Run the producer once. Raises PeerFailed if the run fails, and PeerUnavailable if the producer is missing."""
        done = run_program(self.command(bootstrap, topic, workload), f"the producer of {self.name}")
        report = last_line(done.output)
        if report is None:
            raise peers.PeerFailed(f"the producer of {self.name} printed no last line:\n{done.output[-2000:]}")
        return ProducerReport(report.records, {**report.figures, **done.costs})


class HmbProducer(PerfProducer):
    """HMB's performance producer. `buffer_memory` is the size of its buffer in bytes."""

    name = "HMB"

    def __init__(self, buffer_memory: int = BUFFER_MEMORY) -> None:
        self._buffer_memory = buffer_memory

    def command(self, bootstrap: str, topic: str, workload: Workload) -> list[str]:
        program = [sys.executable, "-m", "hmb.bench.load.perf_producer"]
        return [*program, *_options(topic, workload), *_settings(bootstrap, workload, self._buffer_memory)]


class Kafka43Producer(PerfProducer):
    """The performance tool of Kafka 4.3.0. `security` contains settings such as `security.protocol`."""

    name = "Kafka 4.3.0"

    def __init__(self, security: Mapping[str, str] = NO_SECURITY) -> None:
        self._security = security

    def command(self, bootstrap: str, topic: str, workload: Workload) -> list[str]:
        security = [f"{name}={value}" for name, value in self._security.items()]
        arguments = [*_options(topic, workload), *_settings(bootstrap, workload), *security]
        main_class = "org.apache.kafka.tools.ProducerPerformance"
        return peers.java(peers.kafka_43_jars(), main_class, *arguments, options=peers.CLIENT_OPTIONS)


class Kafka082Producer(PerfProducer):
    """The performance tool of Kafka 0.8.2.2.

    This tool needs no settings for linger and idempotence. Its linger is 0 by default, and Kafka 0.8.2.2 has no
    idempotent producers.
    """

    name = "Kafka 0.8.2.2"

    def command(self, bootstrap: str, topic: str, workload: Workload) -> list[str]:
        settings = ["acks=1", f"bootstrap.servers={bootstrap}", f"buffer.memory={BUFFER_MEMORY}"]
        sizes = [str(workload.records), str(workload.message_bytes)]
        arguments = [topic, *sizes, "-1", *settings, f"batch.size={workload.batch_bytes}"]
        main_class = "org.apache.kafka.clients.tools.ProducerPerformance"
        return peers.java(peers.kafka_082_jars(), main_class, *arguments, options=["-Xmx512M"])


PRODUCERS: dict[str, type[PerfProducer]] = {  # The keys are the possible values of the option --client.
    "4.3.0": Kafka43Producer,
    "0.8.2.2": Kafka082Producer,
    "hmb": HmbProducer,
}


def produce(broker: MeasuredBroker, producer: PerfProducer, workload: Workload, topic: str) -> dict[str, float]:
    """Run a producer once on a new topic, delete the topic, and return the measured values.

    Raises PeerFailed if records are missing in the broker's log at the end of the run. An EmptyBroker discards
    records, so its log is not checked.
    """
    topics.create(broker.bootstrap, topic)
    before = broker.cpu_seconds()
    report = producer.run(broker.bootstrap, topic, workload)
    costs = broker.costs_since(before)
    end = topics.end_offset(broker.bootstrap, topic)
    if broker.name != EmptyBroker.name and not report.records == workload.records == end:
        problem = f"sent {report.records} of {workload.records} records, and the log ends at offset {end}"
        raise peers.PeerFailed(f"the producer of {producer.name} to {broker.name}: {problem}")
    topics.delete(broker.bootstrap, topic)
    return {**report.figures, **workload.rates(report.figures["records_per_second"]), **costs}


def rate_and_cpu(broker: peers.Peer, topic: str, workload: Workload) -> tuple[float, float]:
    """Run HMB's producer once. Return the records per second, and the processor time (s) of the broker."""
    before = peers.cpu_seconds(broker.pid)
    report = HmbProducer().run(broker.bootstrap, topic, workload)
    return report.figures["records_per_second"], peers.cpu_seconds(broker.pid) - before


def _options(topic: str, workload: Workload) -> list[str]:
    sizes = ["--num-records", str(workload.records), "--record-size", str(workload.message_bytes)]
    return ["--topic", topic, *sizes, "--throughput", "-1"]


def _settings(bootstrap: str, workload: Workload, buffer_memory: int = BUFFER_MEMORY) -> list[str]:
    settings = {
        "bootstrap.servers": bootstrap,
        "acks": 1,
        "batch.size": workload.batch_bytes,
        "linger.ms": 0,
        "enable.idempotence": "false",
        "buffer.memory": buffer_memory,
        "max.request.size": MAX_REQUEST_SIZE,
    }
    return ["--command-property", *(f"{name}={value}" for name, value in settings.items())]


def last_line(output: str) -> ProducerReport | None:
    """Return the results from the last line of a producer's output, or None if this line is missing.

    `output` is everything that the producer has printed. The function searches for a line with percentiles, because
    only the last line contains percentiles.
    """
    found = _LAST_LINE.search(output)
    if found is None:
        return None
    figures = {"records_per_second": float(found["rate"]), "avg_ms": float(found["avg"]), "max_ms": float(found["max"])}
    for value, percentile in re.findall(r"([\d.]+) ms ([\d.]+th)", found["percentiles"]):
        figures[PERCENTILES[percentile]] = float(value)
    return ProducerReport(int(found["records"]), figures)
