"""How fast a consumer reads: a performance consumer from one broker, or from two in turns.

    hmb bench consume                                # HMB and Kafka 4.3.0, Kafka's ConsumerPerformance
    hmb bench consume --client hmb -b HOST:PORT      # HMB's consumer; --client arrow: with Arrow batches
    hmb bench consume --num-records 500000 --record-size 1000

A topic of one partition is filled first, by HMB's producer in batches of --batch-size; then each run reads all of it
from its beginning, from the page cache.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from .. import peers
from ..load.consumers import HmbConsumer, Kafka43Consumer, PerfConsumer
from ..load.producers import HmbProducer
from ..peers import topics
from ..peers.targets import Target, add_target_options, targets
from ..progress import Progress
from ..report.samples import Sample, Samples
from ..report.tables import Table, by, by_parameters, median, over_others, spread, text
from ..report.turns import in_turns
from ..suite import add_suite_options, at_least_one, run
from ..thesis.cells import Cell

CLIENTS: dict[str, Callable[[], PerfConsumer]] = {
    "4.3.0": Kafka43Consumer,
    "hmb": HmbConsumer,
    "arrow": lambda: HmbConsumer("arrow"),
}
TOPIC = "hmb-bench-consume"
RATE = "records_per_second"


def fill(target: Target, cell: Cell) -> None:
    """Put the cell's records into a fresh topic."""
    topics.create(target.bootstrap, TOPIC)
    HmbProducer().run(target.bootstrap, TOPIC, cell)
    if (end := topics.end_offset(target.bootstrap, TOPIC)) != cell.records:
        raise peers.PeerFailed(f"{target.name}: a log of {end} records, not {cell.records}")


def consume(target: Target, consumer: PerfConsumer, records: int) -> dict[str, float]:
    before = target.cpu_seconds()
    figures = consumer.run(target.bootstrap, TOPIC, records)
    return {**figures, **target.costs(before)}


def table(options: argparse.Namespace, stack: ExitStack, samples: Samples) -> Iterator[str]:
    brokers, consumer = targets(options, stack), CLIENTS[options.client]()
    cell = Cell(options.record_size, options.batch_size, options.num_records, (0, 0, 0, 0))
    progress = Progress(len(brokers) * (options.repeat + 2))
    for broker in brokers:
        progress.step(f"filling {broker.name}")
        fill(broker, cell)
        stack.callback(topics.delete, broker.bootstrap, TOPIC)
        progress.step(f"warm-up of {broker.name}")
        consume(broker, consumer, cell.records)
    for turn, broker in in_turns(brokers, options.repeat):
        progress.step(f"turn {turn + 1}, {broker.name}")
        figures = consume(broker, consumer, cell.records)
        sizes = {"message_bytes": cell.message, "batch_bytes": cell.batch, "records": cell.records}
        samples.add(Sample("consume", broker.name, consumer.name, turn, sizes, figures))
    progress.end()
    yield from text(tables(samples.taken))


def tables(samples: Sequence[Sample]) -> list[Table]:
    found = []
    for (size, batch, records), runs in by_parameters(samples, "message_bytes", "batch_bytes", "records").items():
        brokers = by(runs, lambda run: run.broker)
        rows = [["from", "records/s", "MB/s", f"{next(iter(brokers))} over it", "broker us/record"]]
        for name, of_broker in brokers.items():
            rate = spread(of_broker, RATE)
            cpu = median(of_broker, "broker_cpu_seconds", float(records) / 1e6, ".2f")
            megabytes = f"{rate.median * float(size) / 1e6:,.1f}"
            rows.append([name, str(rate), megabytes, over_others(of_broker, brokers, RATE), cpu])
        title = f"{records:,} records of {size} B in batches of {batch:,} B, read by {runs[0].client}"
        found.append(Table(title, rows))
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A performance consumer from one broker, or from two in turns.")
    add_target_options(parser)
    parser.add_argument("--client", choices=list(CLIENTS), default="4.3.0", help="Kafka's consumer, or HMB's")
    parser.add_argument("--record-size", type=at_least_one, default=100, help="bytes")
    parser.add_argument("--batch-size", type=at_least_one, default=16_384, help="bytes, of the producer that fills")
    parser.add_argument("--num-records", type=at_least_one, default=3_000_000)
    add_suite_options(parser)
    return parser.parse_args()


def main() -> int:
    return run("consume", parse(), table)


if __name__ == "__main__":
    sys.exit(main())
