"""From the producer through the broker to the consumer: how long a record is on its way when it is alone.

    hmb bench latency                                # HMB and Kafka 4.3.0, Kafka's EndToEndLatency
    hmb bench latency --client hmb --num-records 5000

One record is produced with acks=1 and awaited by a consumer that is in a long poll; then the next.  Kafka's
EndToEndLatency gives whole milliseconds for its percentiles and fractions for the mean; HMB's client gives fractions
for all.  Runs take turns.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import hmb

from .. import peers
from ..peers import processes, topics
from ..peers.targets import Target, add_target_options, targets
from ..progress import Progress
from ..report.samples import Sample, Samples
from ..report.tables import Table, by, by_parameters, spread, text
from ..report.turns import in_turns
from ..suite import add_suite_options, at_least_one, run

PATIENCE = 30.0  # seconds for one record
WARM_UP = 200  # records
FIGURES = ("avg_ms", "p50_ms", "p99_ms", "p999_ms")

Measure = Callable[[Target, str, int, int], dict[str, float]]


def of_kafka(target: Target, topic: str, records: int, size: int) -> dict[str, float]:
    """By Kafka 4.3.0's EndToEndLatency."""
    options = ["--bootstrap-server", target.bootstrap, "--topic", topic, "--num-records", str(records)]
    main_class = "org.apache.kafka.tools.EndToEndLatency"
    command = peers.java(
        peers.kafka_43_jars(), main_class, *options, "--producer-acks", "1", "--record-size", str(size)
    )
    said = processes.run(command, "EndToEndLatency").output
    mean = re.search(r"Avg latency: ([\d.]+) ms", said)
    tail = re.search(r"50th = (\d+), 99th = (\d+), 99.9th = (\d+)", said)
    if mean is None or tail is None:
        raise peers.PeerFailed(f"EndToEndLatency did not come to its end:\n{said[-2000:]}")
    p50, p99, p999 = map(float, tail.groups())
    return {"avg_ms": float(mean[1]), "p50_ms": p50, "p99_ms": p99, "p999_ms": p999}


def of_hmb(target: Target, topic: str, records: int, size: int) -> dict[str, float]:
    """By HMB's producer and consumer, in this process."""
    message = os.urandom(size)
    latencies: list[float] = []
    with (
        hmb.Producer(target.bootstrap, acks=1, linger_ms=0) as producer,
        hmb.Consumer(target.bootstrap, topic, offset="latest") as consumer,
    ):
        for number in range(WARM_UP + records):
            started = time.perf_counter()
            producer.send(topic, message)
            if not consumer.poll(PATIENCE):
                raise peers.PeerFailed(f"{target.name}: record {number} did not arrive in {PATIENCE:g} s")
            latencies.append((time.perf_counter() - started) * 1000)
    latencies = sorted(latencies[WARM_UP:])
    at = {name: latencies[int(share * (records - 1))] for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99))}
    return {"avg_ms": sum(latencies) / records, **at, "p999_ms": latencies[int(0.999 * (records - 1))]}


CLIENTS: dict[str, tuple[str, Measure]] = {"4.3.0": ("Kafka 4.3.0", of_kafka), "hmb": ("HMB", of_hmb)}


def table(options: argparse.Namespace, stack: ExitStack, samples: Samples) -> Iterator[str]:
    brokers, (client, measure) = targets(options, stack), CLIENTS[options.client]
    progress = Progress(len(brokers) * (options.repeat + 1))
    for broker in brokers:
        progress.step(f"warm-up of {broker.name}")
        _run(measure, broker, "hmb-bench-warm-up", WARM_UP, options.record_size)
    for turn, broker in in_turns(brokers, options.repeat):
        progress.step(f"turn {turn + 1}, {broker.name}")
        figures = _run(measure, broker, f"hmb-bench-{turn}", options.num_records, options.record_size)
        parameters = {"message_bytes": options.record_size, "records": options.num_records, "acks": 1}
        samples.add(Sample("latency", broker.name, client, turn, parameters, figures))
    progress.end()
    yield from text(tables(samples.taken))


def tables(samples: Sequence[Sample]) -> list[Table]:
    found = []
    for (size, records), runs in by_parameters(samples, "message_bytes", "records").items():
        rows = [["broker", "mean ms", "p50 ms", "p99 ms", "p99.9 ms"]]
        for name, of_broker in by(runs, lambda run: run.broker).items():
            rows.append([name, *(str(spread(of_broker, figure)) for figure in FIGURES)])
        title = f"{records:,} records of {size} B one by one, acks=1, measured by the clients of {runs[0].client}"
        found.append(Table(title, rows))
    return found


def _run(measure: Measure, broker: Target, topic: str, records: int, size: int) -> dict[str, float]:
    topics.create(broker.bootstrap, topic)
    before = broker.cpu_seconds()
    figures = measure(broker, topic, records, size)
    costs = broker.costs(before)
    topics.delete(broker.bootstrap, topic)
    return {**figures, **costs}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How long a record is on its way when it is alone.")
    add_target_options(parser)
    parser.add_argument("--client", choices=list(CLIENTS), default="4.3.0", help="Kafka's clients, or HMB's")
    parser.add_argument("--record-size", type=at_least_one, default=100, help="bytes")
    parser.add_argument("--num-records", type=at_least_one, default=5_000)
    add_suite_options(parser)
    return parser.parse_args()


def main() -> int:
    return run("latency", parse(), table)


if __name__ == "__main__":
    sys.exit(main())
