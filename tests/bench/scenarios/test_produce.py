"""Tests of the benchmark `produce`: the last line of a producer's output, the selected workloads, and the warm-up."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

import hmb
from hmb.bench import peers
from hmb.bench.load.producers import HmbProducer, PerfProducer, last_line, produce
from hmb.bench.load.workload import Workload
from hmb.bench.peers.chosen import MeasuredBroker
from hmb.bench.progress import Progress
from hmb.bench.scenarios import produce as scenario
from hmb.bench.thesis.cells import CELLS

INTERIM = "99000 records sent, 19800.0 records/sec (1.89 MB/sec), 9.1 ms avg latency, 330.0 ms max latency.\n"
FINAL = (
    "150000 records sent, 20118.0 records/sec (1.92 MB/sec), 8.70 ms avg latency, 330.00 ms max latency, "
    "2 ms 50th, 41 ms 95th, 120 ms 99th, 260 ms 99.9th.\n"
)
KAFKA_082 = (
    "100000 records sent, 66800.267201 records/sec (6.37 MB/sec), 571.53 ms avg latency, 751.00 ms max latency, "
    "596 ms 50th, 731 ms 95th, 739 ms 99th, 742 ms 99.9th.\n"
)


def test_the_figures_are_those_of_the_last_line() -> None:
    report = last_line(INTERIM + FINAL)
    assert report is not None and report.records == 150_000
    assert report.figures == {
        "records_per_second": 20118.0,
        "avg_ms": 8.7,
        "max_ms": 330.0,
        "p50_ms": 2.0,
        "p95_ms": 41.0,
        "p99_ms": 120.0,
        "p999_ms": 260.0,
    }


def test_the_line_of_kafka_082_has_the_same_figures() -> None:
    report = last_line(KAFKA_082)
    assert report is not None and (report.records, report.figures["p99_ms"]) == (100_000, 739.0)


def test_a_run_that_did_not_finish_has_no_figures() -> None:
    assert last_line(INTERIM) is None


def test_rates_count_the_payload_and_the_overhead_of_the_thesis() -> None:
    assert CELLS[0].rates(10_000.0) == {"payload_mb_per_second": 1.0, "wire_mb_per_second": 1.28}


def test_sizes_replace_the_cells() -> None:
    assert scenario.workloads([1, 10], None, None, None) == [CELLS[0], CELLS[9]]
    assert scenario.workloads([1, 10], 500, None, 7) == [Workload(500, 16_384, 7)]


def test_hmbs_producer_sends_what_it_reports() -> None:
    with hmb.Broker() as broker:
        target = MeasuredBroker("embedded", broker.bootstrap_servers, os.getpid())
        figures = produce(target, HmbProducer(), Workload(100, 5_000, 3_000), "t")
    assert figures["records_per_second"] > 0 <= figures["p50_ms"] <= figures["p99_ms"] <= figures["max_ms"]
    assert figures["client_cpu_seconds"] > 0 < figures["broker_resident_bytes"]


def test_a_log_that_ends_elsewhere_is_not_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hmb.bench.peers.topics.end_offset", lambda bootstrap, topic: 99)
    with hmb.Broker() as broker, pytest.raises(peers.PeerFailed, match="the log ends at offset 99"):
        produce(MeasuredBroker("embedded", broker.bootstrap_servers), HmbProducer(), Workload(100, 5_000, 100), "t")


def test_all_brokers_get_the_same_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """All brokers get the same warm-up.

    Before a bug was fixed, the warm-up was too short for Kafka's JVM. Kafka's measured CPU time then included the
    compilation of its code.
    """
    sent: list[tuple[str, Workload]] = []

    def send(broker: MeasuredBroker, producer: PerfProducer, workload: Workload, topic: str) -> dict[str, float]:
        sent.append((broker.name, workload))
        return {}

    now = iter(range(1_000))
    monkeypatch.setattr(scenario, "produce", send)
    monkeypatch.setattr("time.monotonic", lambda: float(next(now)))
    brokers = [MeasuredBroker("HMB", "a:1"), MeasuredBroker("Kafka", "b:2")]
    with ExitStack() as stack:
        scenario.warm_up(brokers, HmbProducer(), 1.5, Progress(1, stack))
    by_broker = {name: [workload for each, workload in sent if each == name] for name in ("HMB", "Kafka")}
    assert by_broker["HMB"] == by_broker["Kafka"] and len(set(by_broker["HMB"])) == 2
