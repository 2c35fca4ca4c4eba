"""Programs that read a topic as fast as they can: Kafka's `kafka-consumer-perf-test.sh` and HMB's `perf_consumer`.

The program `perf_consumer` reads either record objects or Arrow batches.

Each consumer reads a topic with one partition from the beginning. After the last record, each consumer prints
a line with the fields of kafka-consumer-perf-test.sh (one MB is 1,048,576 bytes):
    start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec,
    rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec

Each consumer prints ten values, and the benchmarks compare one of them: `fetch.nMsg.sec`, the number of records
read per second. This rate excludes the time for joining the consumer group.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from hmb.units import MIB

from .. import peers
from ..peers.program import run_program
from .workload import NO_SECURITY


class PerfConsumer(ABC):
    """A program that reads a topic as fast as it can."""

    name: str

    @abstractmethod
    def command(self, bootstrap: str, topic: str, records: int) -> list[str]:
        """Return the command line of a consumer that reads `records` records."""

    def run(self, bootstrap: str, topic: str, records: int) -> dict[str, float]:
        """Run the consumer once, and return the values that were measured.

        Raises PeerFailed if the consumer reads too few records.
        """
        done = run_program(self.command(bootstrap, topic, records), f"the consumer of {self.name}")
        figures = last_line(done.output)
        if figures is None or figures["records"] < records:
            problem = f"the consumer of {self.name} did not read {records} records"
            raise peers.PeerFailed(f"{problem}; its output ends:\n{done.output[-2000:]}")
        return {**figures, **done.costs}


class Kafka43Consumer(PerfConsumer):
    """The performance tool of Kafka 4.3.0. `security` contains settings such as `security.protocol`."""

    name = "Kafka 4.3.0"

    def __init__(self, security: Mapping[str, str] = NO_SECURITY) -> None:
        self._security = security

    def command(self, bootstrap: str, topic: str, records: int) -> list[str]:
        arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(records)]
        arguments += [part for item in self._security.items() for part in ("--command-property", "=".join(item))]
        main_class = "org.apache.kafka.tools.ConsumerPerformance"
        arguments += ["--timeout", "60000"]
        return peers.java(peers.kafka_43_jars(), main_class, *arguments, options=peers.CLIENT_OPTIONS)


class HmbConsumer(PerfConsumer):
    """HMB's consumer; `mode` is "records" or "arrow"."""

    def __init__(self, mode: str = "records") -> None:
        self._mode = mode
        self.name = "HMB" if mode == "records" else f"HMB, {mode}"

    def command(self, bootstrap: str, topic: str, records: int) -> list[str]:
        arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(records)]
        return [sys.executable, "-m", "hmb.bench.load.perf_consumer", *arguments, "--mode", self._mode]


CONSUMERS: dict[str, Callable[[], PerfConsumer]] = {  # The keys are the possible values of the option --client.
    "4.3.0": Kafka43Consumer,
    "hmb": HmbConsumer,
    "arrow": lambda: HmbConsumer("arrow"),
}


def last_line(output: str) -> dict[str, float] | None:
    """Return the measured values in the output of `perf_consumer` or Kafka's kafka-consumer-perf-test.sh.

    The result maps names to values, for example {"records": 1000.0, ...}. The function reads only the last line that
    begins with a digit. Return None if no such line exists, or if the line does not contain ten fields.
    """
    columns = [line.split(", ") for line in output.splitlines() if line[:1].isdigit()]
    if not columns or len(columns[-1]) != 10:
        return None
    mib, _, records, rate, rebalance_ms, fetch_ms, fetch_mib, fetch_rate = map(float, columns[-1][2:])
    return {
        "records": records,
        "records_per_second": fetch_rate,
        "records_per_second_in_all": rate,
        "payload_bytes": mib * MIB,
        "payload_mb_per_second": fetch_mib * MIB / 1e6,
        "rebalance_ms": rebalance_ms,
        "fetch_ms": fetch_ms,
    }
