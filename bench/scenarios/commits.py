"""Measures how many offset commits a broker handles per second.

These commands are examples:
    hmb bench commits                                  # HMB with and without a sync to disk, and Kafka 4.3.0
    hmb bench commits --connections 50 --in-flight 1   # each connection waits for its response

Kafka acknowledges a commit earlier than HMB. Kafka responds when the commit is in the page cache, because replicas on
other machines protect the commit. By default, HMB responds when the commit is on the disk.

The setting `log.flush.acks.all` decides whether HMB waits for the disk before it responds. With
`log.flush.acks.all=false`, HMB responds when the commit is in the page cache, as Kafka does. The benchmark runs HMB
with both values of the setting. Only the figures with the value `false` can be compared with Kafka's figures.

Each connection has its own group and its own partition, and commits the offsets 1, 2, 3 ...
(`load/committers.py`). The client is one process with one thread. To save CPU time, each connection encodes
only one request. For each commit, it then changes only the offset in the encoded bytes.

A run counts only if no response contains an error. In addition, the benchmark reads the committed offset of
each group after the run. It must be the last offset that the broker acknowledged.
"""

from __future__ import annotations

from contextlib import ExitStack

import click

from .. import peers
from ..load.committers import commit, prepare
from ..measurement import POSITIVE, Measurement, scenario, seconds_option, versus_option
from ..peers.chosen import broker_kinds
from ..report.samples import Sample
from ..report.view import Column, SampleView

IN_PAGE_CACHE = {"log.flush.acks.all": "false"}
WARM_UP_SECONDS = 2.0


def title(sample: Sample) -> str:
    return f"{sample.parameters['connections']} connections, {sample.parameters['ahead']} commits of each in flight"


VIEW = SampleView(
    columns=(
        Column("commits_per_second", "commits/s", compare=True, more_is_better=True),
        Column("p50_ms", "p50, ms", spread=False, digits=2),
        Column("p99_ms", "p99, ms", spread=False, digits=2),
        Column("broker_cpu_us_per_commit", "broker CPU, us/commit", spread=False, compare=True, digits=2),
    ),
    title=title,
    reference=-1,
)


def start_brokers(stack: ExitStack, versus: peers.Installation | None) -> dict[str, peers.Peer]:
    """Start the brokers. Return a dict that maps the name of each broker to the broker.

    A broker whose name ends with "on disk" responds to an offset commit when the commit is on the disk. A broker
    whose name ends with "in page cache" responds when the commit is in the page cache.
    """
    own, *others = broker_kinds(versus)
    found: dict[str, peers.Peer] = {f"{own.name}, on disk": own.make()}
    for kind in (own, *others):
        config = {} if kind.name == peers.Kafka43.name else IN_PAGE_CACHE
        found[f"{kind.name}, in page cache"] = kind.make(config=config)
    return {name: stack.enter_context(broker) for name, broker in found.items()}


@scenario("commits", VIEW)
@versus_option
@click.option(
    "--connections", type=POSITIVE, default=16, show_default=True,
    help="Number of connections. Each one has a group and a partition of its own.",
)
@click.option("--in-flight", type=POSITIVE, default=4, show_default=True, help="Requests in flight on each connection.")
@seconds_option
def command(
    measurement: Measurement, versus: peers.Installation | None, connections: int, in_flight: int, seconds: float
) -> None:
    """Measure how many offset commits per second a broker handles.

    In each round, the command measures three brokers, one after the other: HMB with log.flush.acks.all=true, HMB with
    log.flush.acks.all=false, and Kafka 4.3.0. Only the first broker waits until a commit is on disk.
    """
    brokers = start_brokers(measurement.stack, versus)
    progress = measurement.progress(len(brokers) * (1 + measurement.round_count))
    for name, broker in brokers.items():
        progress.step(f"warm-up of {name}")
        prepare(broker, connections)
        commit(broker, connections, in_flight, min(WARM_UP_SECONDS, seconds))
    for number, name in measurement.rounds(list(brokers)):
        progress.step(f"round {number + 1}, {name}")
        rates = commit(brokers[name], connections, in_flight, seconds)
        parameters = {"connections": connections, "ahead": in_flight}
        measurement.add(number, name, "committers", parameters, rates._asdict())
