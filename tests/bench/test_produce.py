"""What the benchmark makes of ProducerPerformance's output, and of pairs of runs."""

from __future__ import annotations

import pytest

from hmb.bench.produce import CELLS, Pair, Result, final_rate

INTERIM = "99000 records sent, 19800.0 records/sec (1.89 MB/sec), 9.1 ms avg latency, 330.0 ms max latency.\n"
FINAL = (
    "150000 records sent, 20118.0 records/sec (1.92 MB/sec), 8.70 ms avg latency, 330.00 ms max latency, "
    "2 ms 50th, 41 ms 95th, 120 ms 99th, 260 ms 99.9th.\n"
)


def test_the_rate_is_the_last_lines() -> None:
    assert final_rate(INTERIM + FINAL) == 20118.0


def test_a_run_that_did_not_finish_has_no_rate() -> None:
    assert final_rate(INTERIM) is None


def test_the_ratio_is_the_median_of_pairs_and_not_of_medians() -> None:
    result = Result(CELLS[0], [Pair(100.0, 50.0), Pair(60.0, 60.0), Pair(300.0, 100.0)])
    assert (result.hmb, result.kafka, result.ratio) == (100.0, 60.0, 2.0)


@pytest.mark.parametrize("records_per_second", [0.0, 10_000.0])
def test_megabytes_are_of_the_message_alone(records_per_second: float) -> None:
    assert Result(CELLS[0], []).megabytes(records_per_second) == records_per_second * 100 / 1e6
