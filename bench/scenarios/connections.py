"""Measures the throughput of a broker with many connections and partitions, compared with one connection.

These commands are examples:
    hmb bench connections                                    # 1, 10, 100, 1000 connections, 1 partition each
    hmb bench connections --counts 1,1000 --partitions 2000  # 1 and 1000 connections, always 2000 partitions

Each connection sends Produce requests with acks=1. A request contains one batch. Five requests of a connection are in
flight at the same time.

A single thread of the client sends the requests of all connections (`load/repeated_requests.py`). The client
therefore needs about the same CPU time for 1,000 connections as for one. If the throughput falls, the broker is the
cause. The goal for HMB: 1,000 connections with 2,000 partitions reach at least 70 % of the throughput of one
connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import click

from ..load.repeated_requests import PRODUCE_VERSION, Load, produce_request
from ..measurement import (
    POSITIVE,
    CommaList,
    Measurement,
    Opponent,
    broker_options,
    record_size_option,
    scenario,
    seconds_option,
)
from ..peers import topics
from ..peers.chosen import MeasuredBroker, running_brokers
from ..report.distribution import percentile
from ..report.samples import Sample
from ..report.tables import Table, counted, group_by, ratios
from ..report.view import Column, SampleView, broker
from .produce import RATE


def title(sample: Sample) -> str:
    sizes = sample.parameters
    return f"Produce requests of {sizes['records_in_batch']} records of {sizes['message_bytes']} B on all connections"


def connections_and_partitions(sample: Sample) -> str:
    connections, partitions = sample.parameters["connections"], sample.parameters["partitions"]
    return f"{counted(connections, 'connection')}, {counted(partitions, 'partition')}"


class ConnectionsView(SampleView):
    """The tables of `SampleView`, and a table that compares each number of connections with the first number.

    By default, the benchmark runs with 1, 10, 100 and 1,000 connections. The additional table divides the rates
    with 10, 100 and 1,000 connections by the rate with 1 connection. With the option `--counts 20,5,80`, the
    table divides by the rate with 20 connections, the first number in the list.
    """

    def tables(self, samples: Sequence[Sample]) -> list[Table]:
        rows = [["", "", "records/s over the first line"]]
        for name, runs in group_by(samples, broker).items():
            first, *others = group_by(runs, connections_and_partitions).items()
            rows += [[name, first[0], ""]]
            rows += [["", count, str(ratios(of_count, first[1], RATE.value) or "")] for count, of_count in others]
        return [*super().tables(samples), Table("Throughput that is left with more connections", rows)]


VIEW = ConnectionsView(
    columns=(
        RATE,
        Column("p50_ms", "p50, ms", spread=False),
        Column("p99_ms", "p99, ms", spread=False),
        Column("broker_resident_bytes", "resident memory, MB", 1e-6, spread=False, digits=0),
    ),
    title=title,
    cell=connections_and_partitions,
)


def measure(
    target: MeasuredBroker, connections: int, partitions: int, batch_records: int, record_size: int, seconds: float
) -> dict[str, float]:
    """Send Produce requests to a new topic for some seconds. Return the throughput and the latencies.

    The result contains the requests and records per second, and the 50th and 99th percentiles of the latency (ms).

    If the benchmark has started the broker itself, the result also contains the broker's CPU time (s) and memory
    (bytes).

    At the end, the function deletes the topic.
    """
    topic = f"hmb-bench-{connections}"
    topics.create(target.bootstrap, topic, partitions=partitions)
    requests = [
        (produce_request(topic, number % partitions, batch_records, record_size), PRODUCE_VERSION)
        for number in range(connections)
    ]
    with closing(Load(target.bootstrap, requests)) as load:
        load.run(seconds / 4)  # This run is the warm-up.
        load.forget_latencies()
        before = target.cpu_seconds()
        responses = load.run(seconds)
        costs = target.costs_since(before)
        latencies = load.latencies()
    topics.delete(target.bootstrap, topic)
    rate = responses / seconds
    percentiles = {name: percentile(latencies, share) * 1000 for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99))}
    return {"requests_per_second": rate, "records_per_second": rate * batch_records, **percentiles, **costs}


@scenario("connections", VIEW)
@broker_options
@click.option(
    "--counts", type=CommaList(POSITIVE), default=[1, 10, 100, 1_000], metavar="N,N,...",
    help="Numbers of connections.  [default: 1,10,100,1000]",
)  # fmt: skip
@click.option("--partitions", type=POSITIVE, help="Number of partitions.  [default: one for each connection]")
@record_size_option
@click.option("--records", type=POSITIVE, default=100, show_default=True, help="Number of records in a batch.")
@seconds_option
def command(
    measurement: Measurement,
    bootstrap: str | None,
    versus: Opponent,
    counts: list[int],
    partitions: int | None,
    record_size: int,
    records: int,
    seconds: float,
) -> None:
    """Measure how the throughput of a broker changes if it has more connections and partitions.

    HMB and Kafka 4.3.0 run alternately. The option --counts lists the numbers of connections to measure. The last
    table compares each throughput with the throughput of the first number in this list. By default, the first
    number is 1.
    """
    brokers = running_brokers(measurement.stack, bootstrap, versus)
    progress = measurement.progress(len(brokers) * len(counts) * measurement.round_count)
    contestants = [(target, count) for count in counts for target in brokers]
    for number, (target, count) in measurement.rounds(contestants):
        progress.step(f"{count} connections, {target.name}")
        figures = measure(target, count, partitions or count, records, record_size, seconds)
        sizes = {"connections": count, "partitions": partitions or count}
        sizes |= {"message_bytes": record_size, "records_in_batch": records, "acks": 1}
        measurement.add(number, target.name, "load", sizes, figures)
