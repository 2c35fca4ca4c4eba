"""Measures the throughput of a consumer: records per second, and the broker's CPU time for each record.

These commands are examples:
    hmb bench consume                                # HMB and Kafka 4.3.0, with Kafka's ConsumerPerformance
    hmb bench consume --client hmb -b HOST:PORT      # HMB's consumer and a running broker
    hmb bench consume --client arrow                 # HMB's consumer, which reads Arrow batches
    hmb bench consume --num-records 500000 --record-size 1000
    hmb bench consume --versus ../before             # this HMB and the HMB of another checkout

First, HMB's producer fills a topic of one partition, in batches of `--batch-size` bytes. After that, each run reads the
whole topic from the beginning. The records are still in the page cache, so no run waits for the disk.
"""

from __future__ import annotations

import click

from .. import peers
from ..load.consumers import CONSUMERS, PerfConsumer
from ..load.producers import HmbProducer
from ..load.workload import Workload
from ..measurement import POSITIVE, Measurement, Opponent, broker_options, record_size_option, scenario
from ..peers import topics
from ..peers.chosen import MeasuredBroker, running_brokers
from ..report.samples import Sample
from ..report.view import Column, SampleView
from .produce import BROKER_CPU, RATE

TOPIC = "hmb-bench-consume"


def title(sample: Sample) -> str:
    sizes = sample.parameters
    batches = f"{sizes['records']:,} records of {sizes['message_bytes']} B in batches of {sizes['batch_bytes']:,} B"
    return f"{batches}, read by {sample.client}"


VIEW = SampleView(columns=(RATE, Column("payload_mb_per_second", "MB/s", spread=False), BROKER_CPU), title=title)


def fill(broker: MeasuredBroker, workload: Workload) -> None:
    """Write the records of a workload into a new topic. Raises PeerFailed if the log does not contain all records."""
    topics.create(broker.bootstrap, TOPIC)
    HmbProducer().run(broker.bootstrap, TOPIC, workload)
    if (end := topics.end_offset(broker.bootstrap, TOPIC)) != workload.records:
        raise peers.PeerFailed(f"the log of {broker.name} ends at offset {end}, not at {workload.records}")


def consume(broker: MeasuredBroker, consumer: PerfConsumer, records: int) -> dict[str, float]:
    """Run a consumer once. Return its rate (records/s), and the CPU time that the broker uses for each record."""
    before = broker.cpu_seconds()
    figures = consumer.run(broker.bootstrap, TOPIC, records)
    return {**figures, **broker.costs_since(before)}


@scenario("consume", VIEW)
@broker_options
@click.option(
    "--client", type=click.Choice(list(CONSUMERS)), default="4.3.0", show_default=True,
    help="The consumer: Kafka's, or HMB's with record objects or with Arrow batches.",
)  # fmt: skip
@record_size_option
@click.option("--batch-size", type=POSITIVE, default=16_384, show_default=True, help="Size of a batch in bytes.")
@click.option("--num-records", type=POSITIVE, default=3_000_000, show_default=True)
def command(
    measurement: Measurement,
    bootstrap: str | None,
    versus: Opponent,
    client: str,
    record_size: int,
    batch_size: int,
    num_records: int,
) -> None:
    """Measure how many records per second a consumer reads, and the broker's CPU time for a record.

    HMB and Kafka 4.3.0 run alternately. Each run reads a topic with one partition from the beginning.
    """
    brokers, consumer = running_brokers(measurement.stack, bootstrap, versus), CONSUMERS[client]()
    workload = Workload(record_size, batch_size, num_records)
    progress = measurement.progress(len(brokers) * (measurement.round_count + 2))
    for broker in brokers:
        progress.step(f"filling {broker.name}")
        fill(broker, workload)
        measurement.stack.callback(topics.delete, broker.bootstrap, TOPIC)
        progress.step(f"warm-up of {broker.name}")
        consume(broker, consumer, num_records)
    for number, broker in measurement.rounds(brokers):
        progress.step(f"round {number + 1}, {broker.name}")
        figures = consume(broker, consumer, num_records)
        measurement.add(number, broker.name, consumer.name, workload.parameters, figures)
