"""What the benchmarks make of a performance producer's last line, and of the runs of a turn."""

from __future__ import annotations

import os

import hmb
from hmb.bench.load.producers import HmbProducer, last_line
from hmb.bench.peers.targets import Target
from hmb.bench.report.samples import Sample
from hmb.bench.scenarios.produce import produce, tables
from hmb.bench.thesis.cells import CELLS, Cell

INTERIM = "99000 records sent, 19800.0 records/sec (1.89 MB/sec), 9.1 ms avg latency, 330.0 ms max latency.\n"
FINAL = (
    "150000 records sent, 20118.0 records/sec (1.92 MB/sec), 8.70 ms avg latency, 330.00 ms max latency, "
    "2 ms 50th, 41 ms 95th, 120 ms 99th, 260 ms 99.9th.\n"
)
OLD = (  # of Kafka 0.8.2.2
    "100000 records sent, 66800.267201 records/sec (6.37 MB/sec), 571.53 ms avg latency, 751.00 ms max latency, "
    "596 ms 50th, 731 ms 95th, 739 ms 99th, 742 ms 99.9th.\n"
)


def test_the_figures_are_the_last_lines() -> None:
    run = last_line(INTERIM + FINAL)
    assert run is not None and run.records == 150_000
    assert run.figures == {
        "records_per_second": 20118.0,
        "avg_ms": 8.7,
        "max_ms": 330.0,
        "p50_ms": 2.0,
        "p95_ms": 41.0,
        "p99_ms": 120.0,
        "p999_ms": 260.0,
    }


def test_the_line_of_2015_says_the_same() -> None:
    run = last_line(OLD)
    assert run is not None and (run.records, run.figures["p99_ms"]) == (100_000, 739.0)


def test_a_run_that_did_not_finish_has_no_figures() -> None:
    assert last_line(INTERIM) is None


def runs(broker: str, *rates: float) -> list[Sample]:
    sizes = {"message_bytes": 100, "batch_bytes": 195, "records": 1_000, "acks": 1}
    figures = {"p99_ms": 1.0}
    return [
        Sample("produce", broker, "HMB", turn, sizes, {"records_per_second": rate, **figures})
        for turn, rate in enumerate(rates)
    ]


def test_the_ratio_is_of_the_runs_of_a_turn_and_not_of_medians() -> None:
    (table,) = tables([*runs("HMB", 100.0, 60.0, 300.0), *runs("Kafka", 50.0, 60.0, 100.0)])
    assert [row[4] for row in table.rows] == ["HMB over it", "", "2.00 (1.00 .. 3.00)"]
    assert "2.00 in the median of the cells" in table.title


def test_one_broker_alone_has_no_ratio() -> None:
    (table,) = tables(runs("HMB", 1.0))
    assert table.rows[1][4] == "" and "ratio" not in table.title


def test_rates_are_of_the_message_and_of_what_the_thesis_counts_with_it() -> None:
    assert (CELLS[0].payload_rate(10_000.0), CELLS[0].wire_rate(10_000.0)) == (1.0, 1.28)


def test_hmbs_producer_sends_what_it_says() -> None:
    with hmb.Broker() as broker:
        target = Target("embedded", broker.bootstrap_servers, os.getpid())
        figures = produce(target, HmbProducer(), Cell(100, 5_000, 3_000, (0, 0, 0, 0)), "t")
    assert figures["records_per_second"] > 0 <= figures["p50_ms"] <= figures["p99_ms"] <= figures["max_ms"]
    assert figures["client_cpu_seconds"] > 0 < figures["broker_resident_bytes"]
