"""The performance consumers: Kafka's own, and HMB's (perf_consumer.py) with record objects or with Arrow batches.

Each reads a topic of one partition from its beginning and ends with Kafka's line, in which MB are of 1048576 bytes::

    start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec,
    rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec

The rate that counts is the last, without the time that a group takes to form.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod

from .. import peers
from ..peers import processes


class PerfConsumer(ABC):
    """One of the consumers."""

    name: str

    @abstractmethod
    def command(self, bootstrap: str, topic: str, records: int) -> list[str]:
        """The command line that reads so many records."""

    def run(self, bootstrap: str, topic: str, records: int) -> dict[str, float]:
        """The figures of one run; PeerFailed if it does not end well or has not read them all."""
        done = processes.run(self.command(bootstrap, topic, records), f"the consumer of {self.name}")
        figures = last_line(done.output)
        if figures is None or figures["records"] < records:
            raise peers.PeerFailed(
                f"the consumer of {self.name} did not read {records} records:\n{done.output[-2000:]}"
            )
        costs = {"client_cpu_seconds": done.cpu_seconds, "client_max_bytes": float(done.max_resident_bytes)}
        return {**figures, **costs}


class Kafka43Consumer(PerfConsumer):
    name = "Kafka 4.3.0"

    def command(self, bootstrap: str, topic: str, records: int) -> list[str]:
        wanted = ["--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(records)]
        main_class = "org.apache.kafka.tools.ConsumerPerformance"
        options = ["-Xmx512M", "-XX:+UseG1GC"]
        return peers.java(peers.kafka_43_jars(), main_class, *wanted, "--timeout", "60000", options=options)


class HmbConsumer(PerfConsumer):
    def __init__(self, mode: str = "records") -> None:
        self._mode = mode
        self.name = "HMB" if mode == "records" else f"HMB, {mode}"

    def command(self, bootstrap: str, topic: str, records: int) -> list[str]:
        wanted = ["--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(records)]
        return [sys.executable, "-m", "hmb.bench.load.perf_consumer", *wanted, "--mode", self._mode]


def last_line(output: str) -> dict[str, float] | None:
    """The figures of the line of numbers; None without it."""
    columns = [line.split(", ") for line in output.splitlines() if line[:1].isdigit()]
    if not columns or len(columns[-1]) != 10:
        return None
    megabytes, _, records, rate, joining, fetching, fetched_megabytes, fetched = map(float, columns[-1][2:])
    return {
        "records": records,
        "records_per_second": fetched,
        "records_per_second_in_all": rate,
        "payload_bytes": megabytes * 1024 * 1024,
        "payload_mb_per_second": fetched_megabytes * 1024 * 1024 / 1e6,
        "rebalance_ms": joining,
        "fetch_ms": fetching,
    }
