"""The thesis' two benchmarks again: ten cells, four scenarios, two generations of Kafka, in turns.

    hmb bench thesis                               # all of it, some 40 minutes
    hmb bench thesis --cells 1 4 7 --repeat 1      # some cells
    hmb bench thesis --scale 0.1                   # a quick look
    hmb bench thesis --generations 4.3.0           # without Kafka 0.8.2.2

The scenarios have the thesis' numbers: 1 is Kafka's producer to Kafka's broker, 2 Kafka's producer to HMB, 3 HMB's
producer to Kafka, 4 HMB's to HMB; 1 to 3 once with Kafka 4.3.0 and once with 0.8.2.2, the thesis' own generation.
The brokers all run the while, each run has a topic of its own, and in each turn of a cell the seven runs follow one
another, so that what else the machine does hits all alike.  A run counts only if the broker's log then ends where the
producer says.

A ratio is that of two runs of one turn; the median and the spread of the turns are reported (thesis_tables.py), and
which goals are met.  Every run is kept (samples.py).  Without Java, scenario 4 alone runs, and what is missing is said.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from .. import peers
from ..load.producers import HmbProducer, Kafka082Producer, Kafka43Producer, PerfProducer
from ..peers.targets import Target
from ..progress import Progress
from ..report.samples import Sample, Samples
from ..report.tables import text
from ..report.turns import in_turns
from ..scenarios.produce import produce
from ..suite import add_suite_options, run
from .cells import CELLS, WARM_UP, Cell
from .tables import costs, goals, rates
from .tables import tables as tables  # as every suite has it

GENERATIONS: dict[str, tuple[type[peers.Peer], type[PerfProducer]]] = {
    "4.3.0": (peers.Kafka43, Kafka43Producer),
    "0.8.2.2": (peers.Kafka082, Kafka082Producer),
}


@dataclass(frozen=True)
class Scenario:
    """Which producer sends to which broker."""

    number: int  # the thesis'
    generation: str  # of Kafka; none in scenario 4
    target: Target
    producer: PerfProducer

    def __str__(self) -> str:
        return f"{self.number}: {self.producer.name} -> {self.target.name}"


def scenarios(generations: Sequence[str], stack: ExitStack) -> list[Scenario]:
    """The scenarios that this machine can run, their brokers started; says what is missing for the others."""
    hmb, hmb_producer = Target.of(stack.enter_context(peers.Hmb())), HmbProducer()
    found: list[Scenario] = []
    for generation in generations:
        broker_type, producer_type = GENERATIONS[generation]
        try:
            kafka, producer = Target.of(stack.enter_context(broker_type())), producer_type()
        except peers.PeerUnavailable as missing:
            print(f"hmb: without Kafka {generation}: {missing}", file=sys.stderr)
            continue
        pairs = ((kafka, producer), (hmb, producer), (kafka, hmb_producer))
        found += [Scenario(number, generation, *pair) for number, pair in enumerate(pairs, 1)]
    return [*found, Scenario(4, "", hmb, hmb_producer)]


def measure(
    contestants: Sequence[Scenario], cells: Sequence[Cell], repeat: int, samples: Samples
) -> Iterator[list[Sample]]:
    """Each cell's runs, when they are there; a warm-up first, since Java's compiler needs one."""
    progress = Progress(len(contestants) * (len(cells) * repeat + 1))
    for number, scenario in enumerate(contestants):
        progress.step(f"warm-up, {scenario}")
        produce(scenario.target, scenario.producer, WARM_UP, f"warm-up-{number}")
    for number, cell in enumerate(cells):
        of_cell: list[Sample] = []
        for turn, scenario in in_turns(contestants, repeat):
            progress.step(f"{cell}, turn {turn + 1}, {scenario}")
            topic = f"cell-{number}-{turn}-{scenario.number}-{scenario.generation}"
            of_cell.append(_sample(scenario, cell, turn, produce(scenario.target, scenario.producer, cell, topic)))
            samples.add(of_cell[-1])
        yield of_cell
    progress.end()


def _sample(scenario: Scenario, cell: Cell, turn: int, figures: dict[str, float]) -> Sample:
    sizes = {"message_bytes": cell.message, "batch_bytes": cell.batch, "records": cell.records}
    parameters: dict[str, float | str] = {
        "scenario": scenario.number,
        "generation": scenario.generation,
        **sizes,
        "acks": 1,
    }
    return Sample("thesis", scenario.target.name, scenario.producer.name, turn, parameters, figures)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hmb bench thesis", description="The thesis' two benchmarks, in turns.")
    numbers = range(1, len(CELLS) + 1)
    parser.add_argument("--cells", type=int, nargs="+", choices=numbers, default=list(numbers), help="default: all ten")
    parser.add_argument(
        "--generations", nargs="+", choices=list(GENERATIONS), default=list(GENERATIONS), help="of Kafka"
    )
    add_suite_options(parser)
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of records")
    return parser.parse_args()


def table(options: argparse.Namespace, stack: ExitStack, samples: Samples) -> Iterator[str]:
    cells = [CELLS[number - 1].scaled(options.scale) for number in options.cells]
    contestants = scenarios(options.generations, stack)
    for of_cell in measure(contestants, cells, options.repeat, samples):
        yield from text(rates(of_cell))
    yield from text([costs(samples.taken), *goals(samples.taken)])


def main() -> int:
    return run("thesis", parse(), table)


if __name__ == "__main__":
    sys.exit(main())
