"""Measures how costs grow in HMB's broker with more connections or partitions, larger responses, or a larger log.

These commands are examples:
    hmb bench growth                        # connections, partitions, the size of a response, the size of the log
    hmb bench growth --of connections,log   # only connections and the size of the log

The option --of accepts four names. Each line shows a name, the thing that grows, and (after the colon) the
measured values:
    connections   1 to 1,000 connections: records/s, and the 99th percentile of the latency of a request
    partitions    1 to 2,000 partitions: time to start after a clean stop or after a kill; memory; open files
    fetch         a response of 1 MB to 100 MB: MB/s
    log           a log of 1 GB to 50 GB (sparse files): time to append, to read at the end or at random offsets

`hmb bench plot` draws one curve for each measured value, for example for the records/s. The x axis shows the
number that the benchmark increases, for example the number of connections. A flat curve means that the
measured value does not depend on this number.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import click

from hmb.client import Connection
from hmb.client.metadata import parse_servers
from hmb.protocol.messages.fetch import FetchRequest
from hmb.storage.state.manifest import CLEAN_SHUTDOWN

from .. import peers
from ..load.repeated_requests import PRODUCE_VERSION, Load, produce_request, raise_errors
from ..logs import many_partitions, sparse
from ..measurement import CommaList, Measurement, Parameters, scenario
from ..peers import topics
from ..peers.chosen import MeasuredBroker
from ..report.view import Column, SampleView
from . import connections

MB = 1_000_000
FETCH_VERSION = 12
FETCH_SECONDS = 3.0
TITLES = {
    "connections": "One producer on each connection, all at once",
    "partitions": "The start of a broker that has partitions",
    "fetch": "Responses to a fetch, one after the other",
    "log": "One append, one read",
}
VIEW = SampleView(
    columns=(
        Column("records_per_second", "throughput, records/s"),
        Column("p99_ms", "p99 of a request, ms"),
        Column("start_seconds", "after a clean stop, s to the first response"),
        Column("start_after_kill_seconds", "after a kill, s to the first response"),
        Column("resident_mb", "resident memory, MB"),
        Column("open_files", "open files, files"),
        Column("mb_per_second", "throughput, MB/s"),
        Column("append_us", "append, us"),
        Column("read_at_end_us", "read at the end, us"),
        Column("read_anywhere_us", "read anywhere, us"),
    ),
    title=lambda sample: TITLES[str(sample.parameters["of"])],
    contestant=lambda sample: f"{sample.parameters['size']:,} {sample.parameters['unit']}",
    x=lambda sample: float(sample.parameters["size"]),
    x_label=lambda sample: str(sample.parameters["unit"]),
)


@dataclass(frozen=True)
class GrowingThing:
    """A number that the benchmark increases step by step, for example the number of connections.

    `sizes` contains the values of this number. `measure` takes one value, and returns the results of the
    measurement, for example `{"mb_per_second": 800.0}`.
    """

    unit: str
    sizes: tuple[int, ...]
    measure: Callable[[int], Mapping[str, float]]


def measure_connections(broker: MeasuredBroker, count: int) -> dict[str, float]:
    figures = connections.measure(broker, count, partitions=count, batch_records=100, record_size=100, seconds=3.0)
    return {name: figures[name] for name in ("records_per_second", "p99_ms")}


def measure_partitions(count: int) -> dict[str, float]:
    """Measure how long a broker with `count` partitions takes to start, after a clean stop and again after a kill.

    The kill is simulated: the function deletes the file that marks a clean stop. The result also contains the
    memory and the number of open files after the first measured start.
    """
    broker = peers.Hmb()
    try:
        broker.start()  # The first start is not measured, because it creates the files of the data directory.
        broker.stop()
        many_partitions.write(broker.data_dir, count)
        clean = many_partitions.start(broker)
        (broker.data_dir / CLEAN_SHUTDOWN).unlink()
        killed = many_partitions.start(broker)
    finally:
        broker.stop()
        broker.remove()
    return {
        "start_seconds": clean.seconds,
        "start_after_kill_seconds": killed.seconds,
        "resident_mb": clean.resident_bytes / MB,
        "open_files": float(clean.open_files),
    }


def measure_fetch(broker: MeasuredBroker, megabytes: int) -> dict[str, float]:
    """Return the rate (MB/s) of Fetch requests with responses of `megabytes` MB. One request is in flight at a time."""
    topic = f"fetch-{megabytes}"
    topics.create(broker.bootstrap, topic)
    requests = [(produce_request(topic, 0, 1, MB), PRODUCE_VERSION)]
    with closing(Load(broker.bootstrap, requests, in_flight=1)) as load:
        while load.connections[0].responses <= megabytes:
            load.run(0.1)
    partition = FetchRequest.FetchTopic.FetchPartition(partition=0, partition_max_bytes=megabytes * MB)
    fetched = FetchRequest.FetchTopic(topic=topic, partitions=[partition])
    request = FetchRequest(max_bytes=megabytes * MB, min_bytes=1, topics=[fetched])
    with Connection(*parse_servers(broker.bootstrap)[0]) as connection:
        size = 0
        started = time.perf_counter()
        while (seconds := time.perf_counter() - started) < FETCH_SECONDS or not size:
            response = connection.send(request, FETCH_VERSION)
            raise_errors(response)
            size += len(response.responses[0].partitions[0].records)
    topics.delete(broker.bootstrap, topic)
    return {"mb_per_second": size / MB / seconds}


def measure_log(gigabytes: int) -> dict[str, float]:
    costs = sparse.measure(gigabytes * 1_000 * MB)
    return {"append_us": costs.append, "read_at_end_us": costs.read_at_end, "read_anywhere_us": costs.read}


@scenario("growth", VIEW)
@click.option(
    "--of", "names", type=CommaList(click.Choice(list(TITLES))), default=list(TITLES), metavar="NAME,...",
    help=f"Measurements to run: {', '.join(TITLES)}.  [default: all]",
)  # fmt: skip
def command(measurement: Measurement, names: list[str]) -> None:
    """Measure how costs in HMB's broker grow with connections, partitions, larger responses and a larger log."""
    peer = measurement.stack.enter_context(
        peers.Hmb(config={"fetch.max.bytes": str(200 * MB), "message.max.bytes": str(2 * MB)})
    )
    broker = MeasuredBroker.of(peer)
    things = {
        "connections": GrowingThing("connections", (1, 10, 100, 300, 1_000), partial(measure_connections, broker)),
        "partitions": GrowingThing("partitions", (1, 10, 100, 500, 2_000), measure_partitions),
        "fetch": GrowingThing("MB in a response", (1, 4, 16, 50, 100), partial(measure_fetch, broker)),
        "log": GrowingThing("GB in the log", (1, 5, 20, 50), measure_log),
    }
    progress = measurement.progress(measurement.round_count * sum(len(things[name].sizes) for name in names))
    for name in names:
        thing = things[name]
        for number in range(measurement.round_count):
            for size in thing.sizes:
                progress.step(f"{size} {thing.unit}")
                parameters: Parameters = {"of": name, "unit": thing.unit, "size": size}
                measurement.add(number, "HMB", "load", parameters, thing.measure(size))
