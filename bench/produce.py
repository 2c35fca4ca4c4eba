"""How fast a producer gets its records acked: Kafka's own ProducerPerformance against HMB and Kafka 4.3.0, in turns.

    python -m hmb.bench.produce                             # the thesis' ten cells, three pairs of runs each
    python -m hmb.bench.produce --cells 1 2 --repeat 5      # some of them, more often
    python -m hmb.bench.produce --scale 0.1 --json          # a quick look, for a program

The cells are the thesis' two benchmarks (chapter 10): messages of 100 B in batches of five sizes, and messages of five
sizes in batches of 12800 B; acks=1, one partition, linger 0, no idempotence, buffer.memory 67108864.  The client is the
same in every run, the Java producer of Kafka 4.3.0 in a JVM of its own.

Records/s on one machine say little: it may be busy, hot or throttled.  So both brokers run all the while and take
turns, the one that goes first changes with every repetition, each run has a fresh topic, and what counts is the ratio
of the two runs of a pair: its median over the repetitions.  A rate is the median of its own broker's runs.  A run
counts only if the broker's log then ends where the producer's acks say.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from . import peers, topics


@dataclass(frozen=True)
class Cell:
    """Message and batch size in bytes, and how many records take both brokers some 5 to 8 s."""

    message: int
    batch: int
    records: int

    def __str__(self) -> str:
        return f"{self.message} B, batch {self.batch}"


BATCH_SIZE_BENCHMARK = (
    Cell(100, 195, 50_000),
    Cell(100, 1_387, 450_000),
    Cell(100, 8_192, 1_100_000),
    Cell(100, 16_384, 1_500_000),
    Cell(100, 56_769, 2_000_000),
)
MESSAGE_SIZE_BENCHMARK = (
    Cell(10, 12_800, 3_000_000),
    Cell(100, 12_800, 1_300_000),
    Cell(1_000, 12_800, 350_000),
    Cell(10_000, 12_800, 30_000),
    Cell(100_000, 12_800, 7_000),
)
CELLS = BATCH_SIZE_BENCHMARK + MESSAGE_SIZE_BENCHMARK
WARM_UP = Cell(100, 16_384, 400_000)
RUN_SECONDS = 300


@dataclass(frozen=True)
class Pair:
    """Records/s of two runs one after the other."""

    hmb: float
    kafka: float

    @property
    def ratio(self) -> float:
        return self.hmb / self.kafka


@dataclass(frozen=True)
class Result:
    """The pairs of a cell."""

    cell: Cell
    pairs: list[Pair]

    @property
    def hmb(self) -> float:
        return median(pair.hmb for pair in self.pairs)

    @property
    def kafka(self) -> float:
        return median(pair.kafka for pair in self.pairs)

    @property
    def ratio(self) -> float:
        return median(pair.ratio for pair in self.pairs)

    def megabytes(self, rate: float) -> float:
        return rate * self.cell.message / 1e6

    def as_dict(self) -> dict[str, object]:
        pairs = [{"hmb": pair.hmb, "kafka": pair.kafka} for pair in self.pairs]
        sizes = {"message_bytes": self.cell.message, "batch_bytes": self.cell.batch, "records": self.cell.records}
        return {**sizes, "hmb": self.hmb, "kafka": self.kafka, "ratio": self.ratio, "pairs": pairs}


def produce(broker: peers.Peer, cell: Cell, topic: str) -> float:
    """Records/s of one run of ProducerPerformance on a topic of its own, which is deleted afterwards."""
    topics.create(broker.port, topic)
    sent = ["--topic", topic, "--num-records", str(cell.records), "--record-size", str(cell.message)]
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "acks": "1",
        "batch.size": cell.batch,
        "linger.ms": 0,
        "enable.idempotence": "false",
        "buffer.memory": 67_108_864,
        "max.request.size": 2_097_152,
    }
    properties = [f"{name}={value}" for name, value in settings.items()]
    arguments = [*sent, "--throughput", "-1", "--command-property", *properties]
    main_class = "org.apache.kafka.tools.ProducerPerformance"
    command = peers.java(peers.kafka_43_jars(), main_class, *arguments, options=["-Xmx512M", "-XX:+UseG1GC"])
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS)
    rate = final_rate(done.stdout)
    end = topics.end_offset(broker.port, topic)
    if rate is None or end != cell.records:
        said = f"{done.stdout}{done.stderr}"[-2000:]
        raise peers.PeerFailed(f"{broker.name}: a log of {end} records, not {cell.records}\n{said}")
    topics.delete(broker.port, topic)
    return rate


def final_rate(output: str) -> float | None:
    """The records/s of ProducerPerformance's last line, the only one with percentiles; None without it."""
    match = re.search(r"([\d.]+) records/sec .* 50th", output)
    return None if match is None else float(match.group(1))


def measure(hmb: peers.Peer, kafka: peers.Peer, cells: Sequence[Cell], repeat: int) -> Iterator[Result]:
    """Each cell's pairs, after a warm-up of both brokers (Kafka's JIT compiler needs one)."""
    for broker in (hmb, kafka):
        produce(broker, WARM_UP, "warm-up")
    for number, cell in enumerate(cells):
        pairs: list[Pair] = []
        for turn in range(repeat):
            order = (hmb, kafka) if turn % 2 == 0 else (kafka, hmb)
            rates = {broker: produce(broker, cell, f"cell-{number}-{turn}") for broker in order}
            pairs.append(Pair(rates[hmb], rates[kafka]))
        yield Result(cell, pairs)


HEADING = f"{'acks=1, one partition':<24}{'HMB rec/s':>11}{'MB/s':>8}{'Kafka rec/s':>15}{'MB/s':>8}{'ratio':>9}"


def line(result: Result) -> str:
    ratios = [pair.ratio for pair in result.pairs]
    hmb = f"{result.hmb:>11,.0f}{result.megabytes(result.hmb):>8.1f}"
    kafka = f"{result.kafka:>15,.0f}{result.megabytes(result.kafka):>8.1f}"
    return f"{result.cell!s:<24}{hmb}{kafka}{result.ratio:>9.2f}   {min(ratios):.2f} .. {max(ratios):.2f}"


def run(cells: Sequence[Cell], repeat: int, *, as_json: bool) -> None:
    results: list[Result] = []
    with peers.Hmb() as hmb, peers.Kafka43() as kafka:
        if not as_json:
            print(HEADING)
        for result in measure(hmb, kafka, cells, repeat):
            results.append(result)
            if not as_json:
                print(line(result), flush=True)
    if as_json:
        print(json.dumps([result.as_dict() for result in results], indent=2))
    else:
        ratios = [result.ratio for result in results]
        print(f"ratio: {median(ratios):.2f} in the median, {min(ratios):.2f} at least")


def main() -> int:
    parser = argparse.ArgumentParser(description="ProducerPerformance against HMB and Kafka 4.3.0, in turns.")
    numbers = range(1, len(CELLS) + 1)
    parser.add_argument("--cells", type=int, nargs="+", choices=numbers, default=list(numbers), help="default: all ten")
    parser.add_argument("--repeat", type=int, default=3, help="pairs of runs a cell")
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of records")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    chosen = [CELLS[number - 1] for number in options.cells]
    cells = [replace(cell, records=max(1, int(cell.records * options.scale))) for cell in chosen]
    try:
        run(cells, options.repeat, as_json=options.json)
    except (peers.PeerUnavailable, peers.PeerFailed) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
