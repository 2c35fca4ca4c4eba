"""The command `hmb bench thesis`, which repeats benchmarks from the year 2015 with two releases of Kafka.

The benchmarks come from the bachelor thesis on which HMB is based.

These commands are examples:
    hmb bench thesis                               # the whole benchmark, about 40 minutes
    hmb bench thesis --cells 1,4,7 --repeat 1      # only three of the ten workloads, in one round
    hmb bench thesis --scale 0.1                   # a tenth of the records, for a quick look
    hmb bench thesis --generations 4.3.0           # only one of the two releases of Kafka

The benchmark repeats the four scenarios of the thesis, each with a producer and a broker. In scenarios 1 to 3,
the producer, the broker or both come from Kafka. These scenarios run with two releases, Kafka 4.3.0 and Kafka
0.8.2.2. (The thesis used the series 0.8.2, whose last release is 0.8.2.2.) In scenario 4, both come from HMB.
The benchmark measures 3 * 2 + 1 = 7 pairs of a producer and a broker.

The brokers start before the first run, and serve all runs. Each run has its own topic. A *cell* is one
workload: a combination of a message size and a batch size. In each round of a cell, all seven pairs of a
producer and a broker run one after another. If another program slows down the machine, it therefore slows down
all pairs, and not only one of them.

After each run, the benchmark counts the records in the topic. If the producer had to send 1,000,000 records, the topic
must contain 1,000,000 records. Otherwise, the benchmark ends with an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from .. import peers
from ..load.producers import HmbProducer, Kafka082Producer, Kafka43Producer, PerfProducer, produce
from ..load.workload import WARM_UP
from ..measurement import CommaList, Measurement, scale_option, scenario
from ..peers.chosen import MeasuredBroker
from ..report.samples import Sample
from ..report.tables import Table
from .cells import CELLS, Cell, cells_option
from .charts import BENCHMARKS, chart, rates_of
from .tables import costs, goals, rates

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GENERATIONS: dict[str, tuple[type[peers.Peer], type[PerfProducer]]] = {
    "4.3.0": (peers.Kafka43, Kafka43Producer),
    "0.8.2.2": (peers.Kafka082, Kafka082Producer),
}


class ThesisView:
    """The tables and charts of the benchmark `thesis`."""

    def tables(self, samples: Sequence[Sample]) -> list[Table]:
        """Return all tables: first the goals, next the rates, and last the costs."""
        return [*goals(samples), *rates(samples), costs(samples)]

    def charts(self, samples: Sequence[Sample]) -> dict[str, Figure]:
        """Return the two charts. The keys are the names of the files of the charts."""
        found = rates_of(samples)
        return {f"thesis-{benchmark}-size": chart(benchmark, found) for benchmark in BENCHMARKS}


VIEW = ThesisView()


@dataclass(frozen=True)
class Pair:
    """A producer and the broker to which it sends, for example the producer of Kafka 4.3.0 and HMB's broker."""

    scenario: int  # the number that the thesis gives the scenario, 1 to 4
    generation: str  # the version of Kafka; "" in scenario 4, which uses no Kafka
    broker: MeasuredBroker
    producer: PerfProducer

    def __str__(self) -> str:
        return f"{self.scenario}: {self.producer.name} -> {self.broker.name}"


def start_pairs(generations: Sequence[str], stack: ExitStack) -> list[Pair]:
    """Start the brokers, and return all pairs of a producer and a broker that can run on this machine.

    If a release of Kafka cannot run, for example because Java is not installed, the function prints the reason. In
    this case, the result contains no pairs with this release.
    """
    hmb, hmb_producer = MeasuredBroker.of(stack.enter_context(peers.Hmb())), HmbProducer()
    found: list[Pair] = []
    for generation in generations:
        broker_type, producer_type = GENERATIONS[generation]
        try:
            kafka, producer = MeasuredBroker.of(stack.enter_context(broker_type())), producer_type()
        except peers.PeerUnavailable as missing:
            click.echo(f"hmb: without Kafka {generation}: {missing}", err=True)
            continue
        combinations = ((kafka, producer), (hmb, producer), (kafka, hmb_producer))
        found += [Pair(number, generation, *each) for number, each in enumerate(combinations, 1)]
    return [*found, Pair(4, "", hmb, hmb_producer)]


def measure(measurement: Measurement, pairs: Sequence[Pair], cells: Sequence[Cell]) -> None:
    """Measure each pair of a producer and a broker with each workload in `cells`.

    Before the first measurement, the producer of each pair sends some records, because Kafka's programs run in a JVM,
    which is slow at first.
    """
    progress = measurement.progress(len(pairs) * (len(cells) * measurement.round_count + 1))
    for position, pair in enumerate(pairs):
        progress.step(f"warm-up, {pair}")
        produce(pair.broker, pair.producer, WARM_UP, f"warm-up-{position}")
    for position, cell in enumerate(cells):
        for number, pair in measurement.rounds(pairs):
            progress.step(f"{cell}, round {number + 1}, {pair}")
            topic = f"cell-{position}-{number}-{pair.scenario}-{pair.generation}"
            figures = produce(pair.broker, pair.producer, cell, topic)
            parameters = {"scenario": pair.scenario, "generation": pair.generation, **cell.parameters, "acks": 1}
            measurement.add(number, pair.broker.name, pair.producer.name, parameters, figures)


@scenario("thesis", VIEW)
@cells_option
@click.option(
    "--generations",
    type=CommaList(click.Choice(list(GENERATIONS))),
    default=list(GENERATIONS),
    metavar="VERSION,...",
    help="Versions of Kafka to compare with HMB: 4.3.0, 0.8.2.2.  [default: both]",
)
@scale_option
def command(measurement: Measurement, cells: list[int], generations: list[str], scale: float) -> None:
    """Repeat two benchmarks of the thesis on which HMB is based: five sizes of batches, and five sizes of messages.

    Each of these ten workloads runs in four scenarios. In scenario 1, Kafka's producer sends to Kafka's broker. In
    scenario 2, Kafka's producer sends to HMB's broker. In scenario 3, HMB's producer sends to Kafka's broker. In
    scenario 4, HMB's producer sends to HMB's broker.

    Scenarios 1 to 3 run with two releases of Kafka. Without Java, only scenario 4 runs. The whole benchmark takes about
    40 minutes.
    """
    pairs = start_pairs(generations, measurement.stack)
    measure(measurement, pairs, [CELLS[number - 1].scaled(scale) for number in cells])
