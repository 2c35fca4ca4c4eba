"""Measures the latency of one record on its way from the producer through the broker to the consumer.

These commands are examples:
    hmb bench latency                                # HMB and Kafka 4.3.0, Kafka's EndToEndLatency
    hmb bench latency --client hmb --num-records 5000

A consumer has sent a fetch and waits for a record. Meanwhile, a producer in the same process sends one record with
acks=1. When the record arrives at the consumer, the producer sends the next record.

Kafka's tool EndToEndLatency reports the mean latency with decimals, but percentiles in whole milliseconds.
HMB's client reports the mean and all percentiles with decimals.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable

import click

import hmb

from .. import peers
from ..measurement import POSITIVE, Measurement, Opponent, broker_options, record_size_option, scenario
from ..peers import topics
from ..peers.chosen import MeasuredBroker, running_brokers
from ..peers.program import run_program
from ..report.distribution import percentile
from ..report.view import Column, SampleView

TIMEOUT = 30.0  # the longest time for one record (seconds)
WARM_UP = 200  # the number of records that are sent before the measurement
PERCENTILES = {"p50_ms": 0.5, "p99_ms": 0.99, "p999_ms": 0.999}
VIEW = SampleView(
    columns=(
        Column("avg_ms", "mean, ms", compare=True),
        Column("p50_ms", "p50, ms"),
        Column("p99_ms", "p99, ms", compare=True),
        Column("p999_ms", "p99.9, ms"),
    ),
    title=lambda sample: (
        f"{sample.parameters['records']:,} records of {sample.parameters['message_bytes']} B, one after the other, "
        f"acks=1, measured by the clients of {sample.client}"
    ),
)
Measure = Callable[[MeasuredBroker, str, int, int], dict[str, float]]


def measure_with_kafka(broker: MeasuredBroker, topic: str, records: int, size: int) -> dict[str, float]:
    """Run Kafka's tool EndToEndLatency, and return its figures. Raises PeerFailed if its output is not complete."""
    options = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--num-records", str(records)]
    options += ["--producer-acks", "1", "--record-size", str(size)]
    command = peers.java(peers.kafka_43_jars(), "org.apache.kafka.tools.EndToEndLatency", *options)
    output = run_program(command, "EndToEndLatency").output
    mean = re.search(r"Avg latency: ([\d.]+) ms", output)
    tail = re.search(r"50th = (\d+), 99th = (\d+), 99.9th = (\d+)", output)
    if mean is None or tail is None:
        raise peers.PeerFailed(f"EndToEndLatency printed no percentiles:\n{output[-2000:]}")
    return {"avg_ms": float(mean[1]), **dict(zip(PERCENTILES, map(float, tail.groups()), strict=True))}


def measure_with_hmb(broker: MeasuredBroker, topic: str, records: int, size: int) -> dict[str, float]:
    """Measure with HMB's producer and consumer in this process. Raises PeerFailed if a record is lost."""
    message = os.urandom(size)
    latencies: list[float] = []
    with (
        hmb.Producer(broker.bootstrap, acks=1, linger_ms=0) as producer,
        hmb.Consumer(broker.bootstrap, topic, offset="latest") as consumer,
    ):
        for number in range(WARM_UP + records):
            started = time.perf_counter()
            producer.send(topic, message)
            if not consumer.poll(TIMEOUT):
                raise peers.PeerFailed(f"{broker.name}: record {number} did not arrive in {TIMEOUT:g} s")
            latencies.append((time.perf_counter() - started) * 1000)
    latencies = sorted(latencies[WARM_UP:])
    percentiles = {name: percentile(latencies, share) for name, share in PERCENTILES.items()}
    return {"avg_ms": sum(latencies) / records, **percentiles}


CLIENTS: dict[str, tuple[str, Measure]] = {
    "4.3.0": ("Kafka 4.3.0", measure_with_kafka),
    "hmb": ("HMB", measure_with_hmb),
}


def run(measure: Measure, broker: MeasuredBroker, topic: str, records: int, size: int) -> dict[str, float]:
    """Measure one run on a new topic, delete the topic, and return the figures."""
    topics.create(broker.bootstrap, topic)
    before = broker.cpu_seconds()
    figures = measure(broker, topic, records, size)
    costs = broker.costs_since(before)
    topics.delete(broker.bootstrap, topic)
    return {**figures, **costs}


@scenario("latency", VIEW)
@broker_options
@click.option(
    "--client", type=click.Choice(list(CLIENTS)), default="4.3.0", show_default=True,
    help="The producer and the consumer to use: those of Kafka 4.3.0, or HMB's (hmb).",
)  # fmt: skip
@record_size_option
@click.option("--num-records", type=POSITIVE, default=5_000, show_default=True)
def command(
    measurement: Measurement,
    bootstrap: str | None,
    versus: Opponent,
    client: str,
    record_size: int,
    num_records: int,
) -> None:
    """Measure how long one record needs from the producer through the broker to the consumer.

    HMB and Kafka 4.3.0 run alternately. Only one record is in flight at a time.
    """
    brokers, (name, measure) = running_brokers(measurement.stack, bootstrap, versus), CLIENTS[client]
    progress = measurement.progress(len(brokers) * (measurement.round_count + 1))
    for broker in brokers:
        progress.step(f"warm-up of {broker.name}")
        run(measure, broker, "hmb-bench-warm-up", WARM_UP, record_size)
    for number, broker in measurement.rounds(brokers):
        progress.step(f"round {number + 1}, {broker.name}")
        figures = run(measure, broker, f"hmb-bench-{number}", num_records, record_size)
        parameters = {"message_bytes": record_size, "records": num_records, "acks": 1}
        measurement.add(number, broker.name, name, parameters, figures)
