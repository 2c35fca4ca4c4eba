"""Measures the throughput of a producer: acknowledged records per second, and the broker's CPU time for a record.

These commands are examples. A cell is a combination of a message size and a batch size:
    hmb bench produce                                # HMB and Kafka 4.3.0, all ten cells, three rounds
    hmb bench produce --cells 1,2 --repeat 5         # only the first two cells, five rounds
    hmb bench produce --client hmb -b HOST:PORT      # HMB's producer to a running broker
    hmb bench produce --record-size 500 --batch-size 65536 --num-records 100000
    hmb bench produce --empty                        # also a broker that discards records
    hmb bench produce --versus ../before             # this HMB and the HMB of another checkout

The ten combinations of message size and batch size come from the bachelor thesis on which HMB is based
(`thesis/cells.py`). They all have acks=1, one partition, linger 0, no idempotence and buffer.memory 67108864.

The client is the same in every run: Kafka 4.3.0's tool ProducerPerformance in its own JVM, unless `--client` names
another client. Each run has a new topic. A run counts only if the broker's log contains all sent records after the run.

On a machine with two cores, the client uses most of the CPU time and is the bottleneck. Even a much faster
broker increases the rate (records per second) only slightly. The benchmark therefore also measures the broker's
CPU time for each record.

A JVM needs much CPU time at first, because it is still compiling its code. This would distort the results of a
Kafka broker. All brokers therefore get a warm-up before the first run: each broker receives the same records
for about `--warm-up` seconds.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import click

from ..load.producers import PRODUCERS, PerfProducer, produce
from ..load.workload import WARM_UP, Workload
from ..measurement import POSITIVE, Measurement, Opponent, broker_options, scenario, warm_up_option
from ..peers.chosen import MeasuredBroker, running_brokers
from ..peers.empty_broker import EmptyBroker
from ..progress import Progress
from ..report.samples import Sample
from ..report.view import Column, SampleView
from ..thesis.cells import CELLS, cells_option

# In the warm-up, many small requests make Kafka's JVM compile its code. Kafka is then faster in the measurement.
SMALL_REQUESTS = Workload(100, 195, 20_000)
RATE = Column("records_per_second", "records/s", compare=True, more_is_better=True)
BROKER_CPU = Column("broker_cpu_seconds", "broker CPU, us/record", 1e6, "records", spread=False, compare=True, digits=2)


def cell(sample: Sample) -> str:
    """Return the message size and the batch size of a sample as text, for example "100 B, batch 195"."""
    return f"{sample.parameters['message_bytes']} B, batch {sample.parameters['batch_bytes']}"


VIEW = SampleView(
    columns=(
        RATE,
        Column("payload_mb_per_second", "MB/s", spread=False),
        Column("p99_ms", "p99, ms", spread=False, digits=0),
        BROKER_CPU,
    ),
    title=lambda sample: f"acks=1, one partition, the producer of {sample.client}",
    cell=cell,
)


def warm_up(brokers: Sequence[MeasuredBroker], producer: PerfProducer, seconds: float, progress: Progress) -> None:
    """Send the same records to each broker in turn, for about `seconds` seconds per broker."""
    end = time.monotonic() + seconds * len(brokers)
    progress.step("warm-up")
    for workload in itertools.cycle((SMALL_REQUESTS, WARM_UP)):
        if time.monotonic() >= end:
            return
        for broker in brokers:
            produce(broker, producer, workload, "hmb-bench-warm-up")


def workloads(
    cells: Sequence[int], record_size: int | None, batch_size: int | None, num_records: int | None
) -> list[Workload]:
    """Return the workloads to measure: a workload that the user has chosen, or workloads from the list CELLS.

    A workload has a message size, a batch size and a number of records. If the user has set any of these values,
    return one workload with them. The other values are then defaults. Otherwise, return the workloads of CELLS
    whose numbers (1 to 10) are in `cells`.
    """
    if record_size or batch_size or num_records:
        return [Workload(record_size or 100, batch_size or 16_384, num_records or 1_000_000)]
    return [CELLS[number - 1] for number in cells]


producer_option = click.option(
    "--client", type=click.Choice(list(PRODUCERS)), default="4.3.0", show_default=True,
    help="The producer: 4.3.0 and 0.8.2.2 are versions of Kafka's producer, and hmb is HMB's producer.",
)  # fmt: skip


@scenario("produce", VIEW)
@broker_options
@producer_option
@cells_option
@click.option(
    "--record-size", type=POSITIVE,
    help="Measure only one workload, with messages of this size (bytes), and ignore --cells.",
)  # fmt: skip
@click.option(
    "--batch-size", type=POSITIVE,
    help="Measure only one workload, with batches of this size (bytes), and ignore --cells.",
)  # fmt: skip
@click.option(
    "--num-records", type=POSITIVE, help="Measure only one workload, with this number of records, and ignore --cells."
)  # fmt: skip
@click.option(
    "--scale", type=float, default=1.0, show_default=True,
    help="Multiply the number of records and the duration of the warm-up by this factor.",
)  # fmt: skip
@warm_up_option
@click.option("--empty", is_flag=True, help="Also measure a broker that discards all records.")
def command(
    measurement: Measurement,
    bootstrap: str | None,
    versus: Opponent,
    client: str,
    cells: list[int],
    record_size: int | None,
    batch_size: int | None,
    num_records: int | None,
    scale: float,
    warm_up_seconds: float,
    empty: bool,
) -> None:
    """Measure how many records per second a broker acknowledges, and the broker's CPU time for a record.

    HMB and Kafka 4.3.0 run alternately, after the same warm-up. Each round compares two runs, one of each broker.

    To check that a change of HMB makes nothing slower, compare HMB with a checkout that does not have the change:

    \b
        git worktree add ../before main && make -C ../before .venv/core.stamp
        hmb bench produce --versus ../before

    The option --versus also exists for consume, latency, clients, start, recovery and other benchmarks.
    """
    brokers, producer = running_brokers(measurement.stack, bootstrap, versus), PRODUCERS[client]()
    if empty:
        brokers.append(MeasuredBroker.of(measurement.stack.enter_context(EmptyBroker())))
    chosen = [each.scaled(scale) for each in workloads(cells, record_size, batch_size, num_records)]
    progress = measurement.progress(1 + len(brokers) * measurement.round_count * len(chosen))
    warm_up(brokers, producer, warm_up_seconds * scale, progress)
    for position, workload in enumerate(chosen):
        for number, broker in measurement.rounds(brokers):
            progress.step(f"{workload}, round {number + 1}, {broker.name}")
            figures = produce(broker, producer, workload, f"hmb-bench-{position}-{number}")
            measurement.add(number, broker.name, producer.name, {**workload.parameters, "acks": 1}, figures)
