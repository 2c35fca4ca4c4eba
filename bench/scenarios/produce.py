"""How fast a producer gets its records acked: a performance producer against one broker, or two in turns.

    hmb bench produce                                # HMB and Kafka 4.3.0, the thesis' ten cells, three turns each
    hmb bench produce --cells 1 2 --repeat 5         # some of them, more often
    hmb bench produce --client hmb -b HOST:PORT      # HMB's producer, a broker that runs
    hmb bench produce --record-size 500 --batch-size 65536 --num-records 100000
    hmb bench produce --scale 0.1 --json             # a quick look, for a program
    hmb bench produce --empty                        # and a broker that throws records away (empty_broker.py)

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
from statistics import median as middle

from .. import peers
from ..load.producers import HmbProducer, Kafka082Producer, Kafka43Producer, PerfProducer
from ..peers import topics
from ..peers.empty_broker import EmptyBroker
from ..peers.targets import Target, add_target_options, targets
from ..progress import Progress
from ..report.samples import Sample, Samples
from ..report.tables import Table, by, by_parameters, median, over, spread, text, told
from ..report.turns import in_turns
from ..suite import add_suite_options, at_least_one, run
from ..thesis.cells import CELLS, WARM_UP, Cell

RATE = "records_per_second"
CLIENTS: dict[str, type[PerfProducer]] = {
    "4.3.0": Kafka43Producer,
    "0.8.2.2": Kafka082Producer,
    "hmb": HmbProducer,
}


def produce(target: Target, producer: PerfProducer, cell: Cell, topic: str) -> dict[str, float]:
    """The figures of one run on a topic of its own, which is deleted afterwards."""
    topics.create(target.bootstrap, topic)
    before = target.cpu_seconds()
    done = producer.run(target.bootstrap, topic, cell)
    costs = target.costs(before)
    end = topics.end_offset(target.bootstrap, topic)
    if target.name != EmptyBroker.name and not done.records == cell.records == end:
        raise peers.PeerFailed(f"{producer.name} -> {target.name}: a log of {end} records, not {cell.records}")
    topics.delete(target.bootstrap, topic)
    rate = done.figures["records_per_second"]
    rates = {"payload_mb_per_second": cell.payload_rate(rate), "wire_mb_per_second": cell.wire_rate(rate)}
    return {**done.figures, **rates, **costs}


def measure(
    brokers: Sequence[Target], producer: PerfProducer, cells: Sequence[Cell], repeat: int, samples: Samples
) -> None:
    """Each cell, after a warm-up of all brokers (Kafka's JIT compiler needs one)."""
    progress = Progress(len(brokers) * (1 + repeat * len(cells)))
    for broker in brokers:
        progress.step(f"warm-up of {broker.name}")
        produce(broker, producer, WARM_UP, "hmb-bench-warm-up")
    for number, cell in enumerate(cells):
        for turn, broker in in_turns(brokers, repeat):
            progress.step(f"{cell}, turn {turn + 1}, {broker.name}")
            figures = produce(broker, producer, cell, f"hmb-bench-{number}-{turn}")
            sizes = {"message_bytes": cell.message, "batch_bytes": cell.batch, "records": cell.records, "acks": 1}
            samples.add(Sample("produce", broker.name, producer.name, turn, sizes, figures))
    progress.end()


def tables(samples: Sequence[Sample]) -> list[Table]:
    rows = [["", "to", "records/s", "MB/s", f"{samples[0].broker} over it", "p99 ms", "broker us/record"]]
    ratios: dict[str, list[float]] = {}
    for (size, batch, records), runs in by_parameters(samples, "message_bytes", "batch_bytes", "records").items():
        brokers = by(runs, lambda run: run.broker)
        first = next(iter(brokers.values()))
        for broker, of_broker in brokers.items():
            rate = spread(of_broker, RATE)
            cpu = median(of_broker, "broker_cpu_seconds", float(records) / 1e6, ".2f")
            ratio = None if of_broker is first else over(first, of_broker, RATE)
            megabytes, late = f"{rate.median * float(size) / 1e6:,.1f}", median(of_broker, "p99_ms", form=",.0f")
            rows.append([f"{size} B, batch {batch}", broker, str(rate), megabytes, told(ratio), late, cpu])
            if ratio:
                ratios.setdefault(broker, []).append(ratio.median)
    title = f"acks=1, one partition, the producer of {samples[0].client}"
    for broker, medians in ratios.items():
        title += f"; over {broker} {middle(medians):.2f} in the median of the cells, {min(medians):.2f} at least"
    return [Table(title, rows)]


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
    parser.add_argument("--empty", action="store_true", help="beside a broker that throws records away, as the limit")
    return parser.parse_args()


def table(options: argparse.Namespace, stack: ExitStack, samples: Samples) -> Iterator[str]:
    brokers = targets(options, stack)
    if options.empty:
        brokers.append(Target.of(stack.enter_context(EmptyBroker())))
    measure(brokers, CLIENTS[options.client](), chosen_cells(options), options.repeat, samples)
    yield from text(tables(samples.taken))


def main() -> int:
    return run("produce", parse(), table)


if __name__ == "__main__":
    sys.exit(main())
