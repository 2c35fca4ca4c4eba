"""Compares a broker with one thread per connection to a broker with a fixed number of handler threads.

By default, the benchmark measures a broker with one thread for each connection, and brokers with 1, 2, 4 and 8 handler
threads. It measures each broker with 1 producer, and with 3 producers at the same time. The second example chooses
other numbers:
    hmb bench threads
    hmb bench threads --handlers 1,8 --producers 1,4

HMB is based on the bachelor thesis *Functional Kafka* about a broker in Haskell. That broker passed each request
through a channel to a handler thread. The handler passed each response through another channel to a sender thread.
The broker used only one of four cores. The reason, according to the thesis, is that the broker had only one handler
thread (chapter 10.2.5).

With the setting `threading=staged`, HMB's broker has the design of the broker in Haskell
(`hmb/broker/network/staged.py`). Each connection has one thread that reads requests, and another thread that
sends responses. All connections share the handler threads. The setting `num.io.threads` is their number.

The benchmark sends small requests and large requests. With small requests, most of the broker's work is to pass each
request from thread to thread. With large requests, most of its work is to process the bytes of the requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

import click

from .. import peers
from ..load.producers import PRODUCERS, PerfProducer, produce
from ..load.workload import WARM_UP, Workload
from ..measurement import POSITIVE, CommaList, Measurement, scale_option, scenario
from ..peers.chosen import MeasuredBroker
from ..report.samples import Sample
from ..report.tables import counted
from ..report.view import Column, SampleView
from ..thesis.cells import CELLS
from .produce import RATE, producer_option
from .produce import cell as sizes

SMALL, LARGE = CELLS[0], CELLS[4]


def cell(sample: Sample) -> str:
    return f"{sizes(sample)}, {counted(sample.parameters['producers'], 'producer')}"


VIEW = SampleView(
    columns=(
        RATE,
        Column("p99_ms", "p99, ms", spread=False, digits=0),
        Column("broker_cpu_seconds", "broker CPU, s", spread=False, compare=True, digits=2),
    ),
    title=lambda sample: f"Layouts of threads, producers of {sample.client}",
    cell=cell,
    contestant=lambda sample: str(sample.parameters["layout"]),
    reference=0,  # Index 0: the table compares all layouts with the layout of one thread for each connection.
)


@dataclass(frozen=True)
class ThreadLayout:
    """A running broker, and the number of its handler threads."""

    handlers: int | None  # the number of handler threads; None: one thread for each connection
    broker: MeasuredBroker

    def __str__(self) -> str:
        if self.handlers is None:
            return "a thread a connection"
        return f"staged, {counted(self.handlers, 'handler')}"


def start_layouts(handlers: Sequence[int], stack: ExitStack) -> list[ThreadLayout]:
    """Start a broker with a thread per connection. For each n in `handlers`, start a broker with n handler threads."""
    brokers = {None: peers.Hmb()} | {
        count: peers.Hmb(config={"threading": "staged", "num.io.threads": str(count)}) for count in handlers
    }
    return [ThreadLayout(count, MeasuredBroker.of(stack.enter_context(each))) for count, each in brokers.items()]


def produce_together(
    broker: MeasuredBroker, producer: PerfProducer, workload: Workload, producers: int, topic: str
) -> dict[str, float]:
    """Run several producers at the same time, and return their combined results.

    Each producer sends an equal part of the records to its own topic. The result contains:

    - the records per second of all producers together
    - the 99th percentile of the latency (ms), from the producer with the highest value
    - the CPU time (s) that the broker has used for these records, and the memory (bytes) that the broker uses at
      the end
    """
    share = workload.scaled(1 / producers)
    before = broker.cpu_seconds()
    with ThreadPoolExecutor(producers) as pool:
        runs = list(pool.map(lambda n: produce(broker, producer, share, f"{topic}-{n}"), range(producers)))
    rate = sum(run["records_per_second"] for run in runs)
    latency = max(run["p99_ms"] for run in runs)
    return {"records_per_second": rate, "p99_ms": latency, **broker.costs_since(before)}


@scenario("threads", VIEW)
@click.option(
    "--handlers", type=CommaList(POSITIVE), default=[1, 2, 4, 8], metavar="N,N,...",
    help="For each N, measure a broker with N handler threads.  [default: 1,2,4,8]",
)  # fmt: skip
@click.option(
    "--producers", type=CommaList(POSITIVE), default=[1, 3], metavar="N,N,...",
    help="How many producers run at the same time.  [default: 1,3]",
)  # fmt: skip
@producer_option
@scale_option
def command(
    measurement: Measurement, handlers: list[int], producers: list[int], client: str, scale: float
) -> None:
    """Compare two designs of HMB's broker: one thread for each connection, and a fixed number of handler threads.

    The design with handler threads comes from the bachelor thesis on which HMB is based.
    """
    layouts, producer = start_layouts(handlers, measurement.stack), PRODUCERS[client]()
    workloads = [each.scaled(scale) for each in (SMALL, LARGE)]
    progress = measurement.progress(len(layouts) * (1 + measurement.round_count * len(workloads) * len(producers)))
    for layout in layouts:
        progress.step(f"warm-up, {layout}")
        produce(layout.broker, producer, WARM_UP, "warm-up")
    for workload in workloads:
        for count in producers:
            for number, layout in measurement.rounds(layouts):
                progress.step(f"{workload}, {count} at once, {layout}")
                topic = f"t-{workload.message_bytes}-{workload.batch_bytes}-{count}-{number}"
                figures = produce_together(layout.broker, producer, workload, count, topic)
                parameters: dict[str, float | str] = {"layout": str(layout), "handlers": layout.handlers or 0}
                parameters |= {"message_bytes": workload.message_bytes, "batch_bytes": workload.batch_bytes}
                measurement.add(number, "HMB", producer.name, {**parameters, "producers": count}, figures)
