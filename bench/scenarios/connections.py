"""Many connections and many partitions at once: what is left of one connection's throughput.

    hmb bench connections                                    # 1, 10, 100, 1000 connections, a partition each
    hmb bench connections --counts 1 1000 --partitions 2000  # 1000 connections over 2000 partitions

Each connection sends Produce requests of one batch (acks=1), five in flight, as fast as they are answered, all driven
by one thread (load.py) so that the load costs the same however many connections carry it.  Goal for HMB: 1,000
connections and 2,000 partitions keep 70 % of one connection's throughput.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing

from ..load.repeated import PRODUCE_VERSION, Load, produce_request
from ..peers import topics
from ..peers.targets import Target, add_target_options, targets
from ..progress import Progress
from ..report.samples import Sample, Samples
from ..report.tables import Table, by, by_parameters, median, over, spread, text, told
from ..report.turns import in_turns
from ..suite import add_suite_options, at_least_one, run

RATE = "records_per_second"


def measure(target: Target, connections: int, options: argparse.Namespace) -> dict[str, float]:
    """The figures of some seconds of load on a topic of its own."""
    topic = f"hmb-bench-{connections}"
    partitions = options.partitions or connections
    topics.create(target.bootstrap, topic, partitions=partitions)
    wanted = [
        (produce_request(topic, number % partitions, options.records, options.record_size), PRODUCE_VERSION)
        for number in range(connections)
    ]
    with closing(Load(target.bootstrap, wanted)) as load:
        load.run(options.seconds / 4)  # a warm-up
        for line in load.lines:
            line.late.clear()
        before = target.cpu_seconds()
        answers = load.run(options.seconds)
        costs = target.costs(before)
        late = load.latencies()
    topics.delete(target.bootstrap, topic)
    rate = answers / options.seconds
    percentiles = {"p50_ms": late[len(late) // 2] * 1000, "p99_ms": late[len(late) * 99 // 100] * 1000}
    return {"requests_per_second": rate, "records_per_second": rate * options.records, **percentiles, **costs}


def table(options: argparse.Namespace, stack: ExitStack, samples: Samples) -> Iterator[str]:
    brokers = targets(options, stack)
    progress = Progress(len(brokers) * len(options.counts) * options.repeat)
    contestants = [(broker, count) for count in options.counts for broker in brokers]
    for turn, (broker, count) in in_turns(contestants, options.repeat):
        progress.step(f"{count} connections, {broker.name}")
        figures = measure(broker, count, options)
        sizes = {"connections": count, "partitions": options.partitions or count}
        sizes |= {"message_bytes": options.record_size, "records_in_batch": options.records, "acks": 1}
        samples.add(Sample("connections", broker.name, "load", turn, sizes, figures))
    progress.end()
    yield from text(tables(samples.taken))


def tables(samples: Sequence[Sample]) -> list[Table]:
    rows = [["broker", "connections", "partitions", "records/s", "of the first", "p50 ms", "p99 ms", "broker MB"]]
    for name, of_broker in by(samples, lambda run: run.broker).items():
        counts = by_parameters(of_broker, "connections", "partitions")
        first = next(iter(counts.values()))
        for (connections, partitions), runs in counts.items():
            ratio = "" if runs is first else told(over(runs, first, RATE))
            late = median(runs, "p50_ms"), median(runs, "p99_ms")
            memory = median(runs, "broker_resident_bytes", 1e6, ",.0f")
            rows.append([name, f"{connections:,}", f"{partitions:,}", str(spread(runs, RATE)), ratio, *late, memory])
    sizes = samples[0].parameters
    title = f"Produce requests of {sizes['records_in_batch']} records of {sizes['message_bytes']} B on all connections"
    return [Table(title, rows)]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What is left of one connection's throughput with many.")
    add_target_options(parser)
    parser.add_argument("--counts", type=at_least_one, nargs="+", default=[1, 10, 100, 1_000], help="of connections")
    parser.add_argument("--partitions", type=at_least_one, help="that they share; default: one a connection")
    parser.add_argument("--record-size", type=at_least_one, default=100, help="bytes")
    parser.add_argument("--records", type=at_least_one, default=100, help="in a batch")
    parser.add_argument("--seconds", type=float, default=5.0, help="a run; default: 5")
    add_suite_options(parser)
    return parser.parse_args()


def main() -> int:
    return run("connections", parse(), table)


if __name__ == "__main__":
    sys.exit(main())
