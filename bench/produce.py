"""How fast a producer gets its records acked: a performance producer against one broker, or two in turns.

    hmb bench produce                                # HMB and Kafka 4.3.0, the thesis' ten cells, three turns each
    hmb bench produce --cells 1 2 --repeat 5         # some of them, more often
    hmb bench produce --client hmb -b HOST:PORT      # HMB's producer, a broker that runs
    hmb bench produce --record-size 500 --batch-size 65536 --num-records 100000
    hmb bench produce --scale 0.1 --json             # a quick look, for a program

The cells are the thesis' (cells.py); acks=1, one partition, linger 0, no idempotence, buffer.memory 67108864.  The
client is the same in every run: Kafka 4.3.0's ProducerPerformance in a JVM of its own, unless another is named.

Records/s on one machine say little: it may be busy, hot or throttled.  So the brokers run all the while and take
turns (turns.py), each run has a fresh topic, and what counts is the ratio of the runs of a turn.  A run counts only if
the broker's log then ends where the producer says.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

from . import peers, topics
from .cells import CELLS, WARM_UP, Cell
from .producers import HmbProducer, Kafka082Producer, Kafka43Producer, PerfProducer
from .progress import Progress
from .samples import Sample, Samples
from .suite import add_suite_options, at_least_one, run
from .targets import Target, add_target_options, targets
from .turns import Spread, in_turns

CLIENTS: dict[str, type[PerfProducer]] = {
    "4.3.0": Kafka43Producer,
    "0.8.2.2": Kafka082Producer,
    "hmb": HmbProducer,
}


@dataclass(frozen=True)
class Result:
    """A cell's rates by broker, turn by turn."""

    cell: Cell
    rates: dict[str, Spread]

    @property
    def ratio(self) -> Spread | None:
        """The first broker's rates over the second's; None where there is one only."""
        first, *others = self.rates.values()
        return first.over(others[0]) if others else None


def produce(target: Target, producer: PerfProducer, cell: Cell, topic: str) -> dict[str, float]:
    """The figures of one run on a topic of its own, which is deleted afterwards."""
    topics.create(target.bootstrap, topic)
    before = target.cpu_seconds()
    done = producer.run(target.bootstrap, topic, cell)
    costs = target.costs(before)
    end = topics.end_offset(target.bootstrap, topic)
    if done.records != cell.records or end != cell.records:
        raise peers.PeerFailed(f"{producer.name} -> {target.name}: a log of {end} records, not {cell.records}")
    topics.delete(target.bootstrap, topic)
    rate = done.figures["records_per_second"]
    rates = {"payload_mb_per_second": cell.payload_rate(rate), "wire_mb_per_second": cell.wire_rate(rate)}
    return {**done.figures, **rates, **costs}


def measure(
    brokers: Sequence[Target], producer: PerfProducer, cells: Sequence[Cell], repeat: int, samples: Samples
) -> Iterator[Result]:
    """Each cell's result, after a warm-up of all brokers (Kafka's JIT compiler needs one)."""
    progress = Progress(len(brokers) * (1 + repeat * len(cells)))
    for broker in brokers:
        progress.step(f"warm-up of {broker.name}")
        produce(broker, producer, WARM_UP, "hmb-bench-warm-up")
    for number, cell in enumerate(cells):
        rates: dict[str, list[float]] = {}
        for turn, broker in in_turns(brokers, repeat):
            progress.step(f"{cell}, turn {turn + 1}, {broker.name}")
            figures = produce(broker, producer, cell, f"hmb-bench-{number}-{turn}")
            rates.setdefault(broker.name, []).append(figures["records_per_second"])
            sizes = {"message_bytes": cell.message, "batch_bytes": cell.batch, "records": cell.records, "acks": 1}
            samples.add(Sample("produce", broker.name, producer.name, turn, sizes, figures))
        by_name = {broker.name: Spread(tuple(rates[broker.name])) for broker in brokers}  # a turn's order is another
        yield Result(cell, by_name)
    progress.end()


def heading(brokers: Sequence[Target]) -> str:
    columns = "".join(f"{broker.name + ' rec/s':>24}{'MB/s':>8}" for broker in brokers)
    return f"{'acks=1, one partition':<24}{columns}{'   ratio' if len(brokers) > 1 else ''}"


def line(result: Result) -> str:
    rates = [rate.median for rate in result.rates.values()]
    columns = "".join(f"{rate:>24,.0f}{result.cell.payload_rate(rate):>8.1f}" for rate in rates)
    return f"{result.cell!s:<24}{columns}   {result.ratio or ''!s}"


def chosen_cells(options: argparse.Namespace) -> list[Cell]:
    cells = [CELLS[number - 1] for number in options.cells]
    if any((options.record_size, options.batch_size, options.num_records)):
        message, batch = options.record_size or 100, options.batch_size or 16_384
        cells = [Cell(message, batch, options.num_records or 1_000_000, (0, 0, 0, 0))]
    return [cell.scaled(options.scale) for cell in cells]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A performance producer against one broker, or two in turns.")
    add_target_options(parser)
    parser.add_argument("--client", choices=list(CLIENTS), default="4.3.0", help="Kafka's producer, or HMB's")
    numbers = range(1, len(CELLS) + 1)
    parser.add_argument("--cells", type=int, nargs="+", choices=numbers, default=list(numbers), help="default: all ten")
    parser.add_argument("--record-size", type=at_least_one, help="bytes, instead of the cells")
    parser.add_argument("--batch-size", type=at_least_one, help="bytes, instead of the cells")
    parser.add_argument("--num-records", type=at_least_one, help="instead of the cells'")
    add_suite_options(parser)
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of records")
    return parser.parse_args()


def table(options: argparse.Namespace, stack: ExitStack, samples: Samples) -> Iterator[str]:
    brokers = targets(options, stack)
    yield heading(brokers)
    ratios = []
    for result in measure(brokers, CLIENTS[options.client](), chosen_cells(options), options.repeat, samples):
        yield line(result)
        if result.ratio:
            ratios.append(result.ratio.median)
    if ratios:
        yield f"ratio: {median(ratios):.2f} in the median, {min(ratios):.2f} at least"


def main() -> int:
    return run("produce", parse(), table)


if __name__ == "__main__":
    sys.exit(main())
