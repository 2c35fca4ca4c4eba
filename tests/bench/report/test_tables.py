"""Tables are made of samples alone, the same for a command and for the documentation."""

from __future__ import annotations

from typing import Any

from hmb.bench.report import tables
from hmb.bench.report.samples import Sample, samples_of
from hmb.bench.report.tables import Table
from hmb.bench.scenarios import (
    commits,
    compaction,
    connections,
    consume,
    fetch,
    groups,
    growth,
    latency,
    memory,
    recovery,
    spark,
    start,
    threads,
)
from hmb.bench.thesis import suite as thesis
from hmb.bench.thesis import tables as thesis_tables
from hmb.bench.thesis.cells import CELLS


def sample(suite: str, parameters: dict[str, Any], turn: int = 0, broker: str = "HMB", **figures: float) -> Sample:
    return Sample(suite, broker, parameters.pop("client", "HMB"), turn, parameters, figures)


def of_thesis(scenario: int, generation: str, number: int, turn: int, rate: float) -> Sample:
    cell = CELLS[number]
    sizes = {"message_bytes": cell.message, "batch_bytes": cell.batch, "records": 1_000}
    figures = {"records_per_second": rate, "p50_ms": 1.0, "p99_ms": 2.0, "broker_cpu_seconds": 0.5}
    broker = f"Kafka {generation}" if scenario in (1, 3) else "HMB"
    parameters = {"scenario": scenario, "generation": generation, "client": "HMB", **sizes}
    return sample("thesis", parameters, turn, broker, **figures)


RUNS = [
    of_thesis(scenario, "" if scenario == 4 else "4.3.0", number, turn, rate * (turn + 1))
    for number in (0, 5)
    for turn in range(3)
    for scenario, rate in ((1, 100_000.0), (2, 200_000.0), (3, 90_000.0 + 50_000.0 * number), (4, 300_000.0))
]


def rows_of(table: Table) -> list[dict[str, str]]:
    heading, *rows = table.rows
    return [dict(zip(heading, row, strict=True)) for row in rows]


def test_columns_are_ranged() -> None:
    shown = list(tables.text([Table("title", [["broker", "MB"], ["a", "1,000.5"], ["bcd", "2"]])]))
    assert shown == ["title", "  broker       MB", "  a       1,000.5", "  bcd           2"]


def test_a_ratio_is_of_the_turns_that_both_had() -> None:
    ours = [sample("x", {}, turn, rate=rate) for turn, rate in ((1, 30.0), (0, 10.0), (2, 5.0))]
    theirs = [sample("x", {}, turn, rate=rate) for turn, rate in ((0, 5.0), (1, 10.0))]
    ratio = tables.over(ours, theirs, "rate")
    assert ratio is not None and sorted(ratio.values) == [2.0, 3.0]
    assert tables.over(ours, [], "rate") is None


def test_the_thesis_has_its_ratios_beside_ours() -> None:
    (of_generation,) = thesis_tables.rates(RUNS)
    rows = rows_of(of_generation)
    assert of_generation.title == "Kafka 4.3.0"
    assert [row["producer to broker"] for row in rows[:4]] == [
        "1: HMB -> Kafka 4.3.0",
        "2: HMB -> HMB",
        "3: HMB -> Kafka 4.3.0",
        "4: HMB -> HMB",
    ]
    assert [row["in the thesis"] for row in rows[:4]] == ["", f"{8 / 9:.2f}", f"{10 / 9:.2f}", "1.00"]
    assert rows[1]["over scenario 1"] == "2.00 (2.00 .. 2.00)"
    assert rows[1]["MB/s"] == "40.0" and rows[1]["MB/s on the wire"] == "51.2"


def test_a_goal_is_met_when_it_is_in_every_cell() -> None:
    (table,) = thesis_tables.goals(RUNS)
    two, three = rows_of(table)
    assert (two[""], two["cells"], two["least"]) == ("met", "2 of 2", "2.00")
    assert (three[""], three["cells"], three["least"]) == ("MISSED", "1 of 2", "0.90")
    assert two["the thesis' least, median"] == f"{50 / 85:.2f}, {(8 / 9 + 50 / 85) / 2:.2f}"


def test_what_did_not_run_is_left_out() -> None:
    alone = [run for run in RUNS if run.parameters["scenario"] == 4]
    assert thesis.tables(alone)[0].title == "HMB alone"
    assert thesis_tables.goals(alone) == []
    assert all(not row["over scenario 1"] for row in rows_of(thesis_tables.rates(alone)[0]))


def test_the_thesis_own_figures_are_those_of_the_cells() -> None:
    batch, message = thesis_tables.of_the_thesis()
    assert rows_of(batch)[4]["1: Kafka -> Kafka"] == "98" and rows_of(batch)[4]["3 over 1"] == "0.16"
    assert [len(table.rows) for table in (batch, message)] == [6, 6]


def test_a_reader_of_two_brokers_is_compared_with_the_first() -> None:
    sizes = {"message_bytes": 100, "batch_bytes": 16_384, "records": 1_000_000}
    runs = [
        sample("consume", dict(sizes), turn, broker, records_per_second=rate, broker_cpu_seconds=2.0)
        for turn in range(2)
        for broker, rate in (("HMB", 3e6), ("Kafka", 1e6))
    ]
    first, second = rows_of(consume.tables(runs)[0])
    assert (first["HMB over it"], second["HMB over it"]) == ("", "3.00 (3.00 .. 3.00)")
    assert (first["MB/s"], first["broker us/record"]) == ("300.0", "2.00")


def test_throughput_is_told_as_a_share_of_the_first_count() -> None:
    sizes = {"message_bytes": 100, "records_in_batch": 100, "acks": 1}
    runs = [
        sample("connections", {"connections": n, "partitions": n, **sizes}, records_per_second=rate, p50_ms=1, p99_ms=2)
        for n, rate in ((1, 1000.0), (100, 800.0))
    ]
    assert [row["of the first"] for row in rows_of(connections.tables(runs)[0])] == ["", "0.80 (0.80 .. 0.80)"]


def test_layouts_are_compared_with_a_thread_a_connection() -> None:
    sizes = {"message_bytes": 100, "batch_bytes": 195, "producers": 1}
    runs = [
        sample("threads", {"layout": layout, "handlers": n, **sizes}, records_per_second=rate, p99_ms=1)
        for layout, n, rate in (("staged, 1 handler", 1, 50.0), ("a thread a connection", 0, 100.0))
    ]
    alone, staged = rows_of(threads.tables(runs)[0])
    assert alone["threads of the broker"] == "a thread a connection"
    assert staged["over a thread a connection"] == "0.50 (0.50 .. 0.50)"


def test_other_suites_tell_their_figures() -> None:
    figures = {"avg_ms": 1.0, "p50_ms": 2.0, "p99_ms": 3.0, "p999_ms": 4.0}
    (row,) = rows_of(latency.tables([sample("latency", {"message_bytes": 100, "records": 5}, **figures)])[0])
    assert row["p99 ms"] == "3.00 (3.00 .. 3.00)"
    begun = sample("start", {}, first_ack_seconds=0.2, broker_resident_bytes=30e6)
    assert rows_of(start.tables([begun])[0]) == [
        {"broker": "HMB", "seconds to the first ack": "0.20 (0.20 .. 0.20)", "resident MB": "30"}
    ]
    held = sample("memory", {"gigabytes": 10}, idle_bytes=30e6, resident_bytes=40e6, most_bytes=50e6)
    assert memory.tables([held])[0].rows[1] == ["HMB", "30.0", "40.0", "50.0"]
    figures = {"seconds": 1.0, "cpu_seconds": 0.9, "mb_per_second": 1000.0, "us_a_batch": 2.0}
    (recovered,) = recovery.tables([sample("recovery", {"bytes": 10**9, "batch_bytes": 1000}, **figures)])
    assert recovered.title == "1 GB that were not closed" and rows_of(recovered)[0]["MB/s"] == "1,000"
    grown = sample("growth", {"of": "log", "unit": "GB in the log", "size": 50}, append_us=2.0)
    assert growth.tables([grown])[0].rows == [["GB in the log", "append, us"], ["50", "2.00 (2.00 .. 2.00)"]]


def test_commits_are_compared_with_those_that_promise_the_same() -> None:
    names = "HMB, on disk", "HMB, in page cache", "Kafka 4.3.0, in page cache"
    figures = {"p50_ms": 1.0, "p99_ms": 2.0, "broker_cpu_us_per_commit": 3.0}
    runs = [
        sample("commits", {"connections": 1, "ahead": 1}, 0, name, commits_per_second=rate, **figures)
        for name, rate in zip(names, (50.0, 100.0, 80.0), strict=True)
    ]
    ratios = [row["HMB, in page cache over it"] for row in rows_of(commits.tables(runs)[0])]
    assert ratios == ["", "", "1.25 (1.25 .. 1.25)"]


def test_a_cleaner_is_as_much_faster_as_it_takes_less_time() -> None:
    parameters = {"codec": "lz4", "bytes": 10**9, "log_bytes": 5 * 10**8}
    runs = [
        sample("compaction", dict(parameters), 0, name, seconds=seconds, cpu_seconds=seconds / 2, left_bytes=5e7)
        for name, seconds in (("Kafka 4.3.0", 3.0), ("HMB", 2.0))
    ]
    theirs, ours = rows_of(compaction.tables(runs)[0])
    assert (theirs["HMB's speed over it"], ours["HMB's speed over it"]) == ("1.50 (1.50 .. 1.50)", "")


def test_a_full_fetch_is_over_one_in_a_session() -> None:
    runs = [
        sample("fetch", {"partitions": 100, "kind": kind}, broker_cpu_us_per_fetch=cost, bytes_per_fetch=70.0)
        for kind, cost in (("full", 800.0), ("in a session", 100.0))
    ]
    assert fetch.tables(runs)[0].rows[1][-1] == "8.00 (8.00 .. 8.00)"
    assert fetch.tables(runs[:1])[0].rows[1:] == []


def test_groups_tell_all_that_was_measured() -> None:
    run = sample(
        "groups",
        {"groups": 2, "members": 100, "partitions": 100},
        **dict.fromkeys(groups.COLUMNS, 1.0),
        broker_resident_bytes=40e6,
    )
    (row,) = rows_of(groups.tables([run])[0])
    assert row["resident MB"] == "40" and row["s of the rebalance"] == "1.00 (1.00 .. 1.00)"


def test_sparks_sources_are_compared() -> None:
    runs = [
        sample("spark", {"kind": "read", "partitions": 1, "client": f"spark {source}"},
               records_per_second=rate, records_per_cpu_second=rate, python_worker_bytes=2e8)
        for source, rate in (("hmb", 3e6), ("kafka", 2e6))
    ]  # fmt: skip
    (table,) = spark.tables(runs)
    ours, _, ratio = rows_of(table)
    assert table.title == "read, 1 partition" and ours["Python worker MB"] == "200"
    assert ratio["records/s"] == "1.50 (1.50 .. 1.50)"


def test_samples_of_a_file() -> None:
    assert samples_of({"samples": [{**vars(run)} for run in RUNS]}) == RUNS
