"""Producers and consumers of Python side by side: HMB's, confluent-kafka, aiokafka and kafka-python, in turns.

    hmb bench clients                                # against HMB and Kafka 4.3.0, three turns each
    hmb bench clients -b HOST:PORT --repeat 5        # against a broker that runs
    hmb bench clients --only produce --scale 0.1     # a quick look

Records of 100 B, one partition; each client in a process of its own (one_client.py says which settings are the same for
all and which cannot be).  With one broker after the other every client has a run each turn, so that what the machine
does meanwhile hits all alike.  A producer's run counts only if the log then ends where it should: all acknowledged, all
written.  A consumer reads a topic that HMB's producer filled in batches of 16 KB, the size of Kafka's own producer.

What counts is the ratio of two runs of a turn, in the median, with the spread beside it; records/s are medians too.
`us/record` is the CPU time of the client's process with all its threads, and "by CPU" compares that: it says how fast
the clients were if the broker, the other clients' programs and the rest of the machine took nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby

from .. import peers
from ..peers import processes, topics
from ..peers.targets import Target, add_target_options, targets
from ..progress import Progress
from ..report.samples import Sample, Samples
from ..report.tables import Table, by, over, spread, text, told
from ..report.turns import in_turns
from ..suite import add_suite_options, at_least_one, run

TOPIC = "hmb-bench-clients"
FILLED = f"{TOPIC}-filled"
FILL_BATCH = 16_384
RATE, CPU = "records_per_second", "client_cpu_us_per_record"


@dataclass(frozen=True)
class Contestant:
    """A client (of one_client.py), and how many records take it some seconds."""

    name: str
    what: str
    records: int


PRODUCERS = (
    Contestant("hmb send", "produce", 1_000_000),
    Contestant("hmb send_many", "produce", 3_000_000),
    Contestant("hmb send_many, Arrow", "produce", 3_000_000),
    Contestant("confluent-kafka", "produce", 2_000_000),
    Contestant("aiokafka", "produce", 300_000),
    Contestant("kafka-python", "produce", 150_000),
)
CONSUMERS = (
    Contestant("hmb records", "consume", 2_000_000),
    Contestant("hmb Arrow", "consume", 3_000_000),
    Contestant("hmb consume", "consume", 1_000_000),
    Contestant("confluent-kafka consume", "consume", 2_000_000),
    Contestant("confluent-kafka consume at once", "consume", 3_000_000),
    Contestant("confluent-kafka poll", "consume", 1_000_000),
    Contestant("aiokafka", "consume", 1_000_000),
    Contestant("kafka-python", "consume", 500_000),
)


@dataclass(frozen=True)
class Goal:
    """`client` is to be so many times as fast as another, or if there is none, to reach so many records/s."""

    what: str
    client: str
    over: str | None
    least: float


GOALS = (
    Goal("produce", "hmb send", "kafka-python", 10),
    Goal("produce", "hmb send", "aiokafka", 2),
    Goal("produce", "hmb send_many", "confluent-kafka", 1),
    Goal("consume", "hmb records", "confluent-kafka consume", 1),
    Goal("consume", "hmb records", "confluent-kafka consume at once", 1),
    Goal("consume", "hmb records", "confluent-kafka poll", 1),
    Goal("consume", "hmb records", "aiokafka", 1),
    Goal("consume", "hmb Arrow", None, 1_500_000),
    Goal("consume", "hmb consume", None, 300_000),
)


@dataclass(frozen=True)
class Settings:
    """Of all producers."""

    acks: int
    linger_ms: int
    batch_size: int

    def options(self) -> list[str]:
        told = ("--acks", self.acks), ("--linger-ms", self.linger_ms), ("--batch-size", self.batch_size)
        return [str(part) for pair in told for part in pair]


def run_one(target: Target, contestant: Contestant, topic: str, settings: Settings) -> dict[str, float]:
    """The figures of one run; PeerFailed where records are missing."""
    where = ["--bootstrap-server", target.bootstrap, "--topic", topic, "--num-records", str(contestant.records)]
    one_client = [sys.executable, "-m", "hmb.bench.load.one_client", contestant.what, contestant.name]
    done = processes.run([*one_client, *where, *settings.options()], f"{contestant.name} ({contestant.what})")
    said = json.loads(done.output)
    return {
        "records_per_second": said["records"] / said["seconds"],
        "client_cpu_us_per_record": said["cpu_seconds"] / said["records"] * 1e6,
        "client_max_bytes": float(done.max_resident_bytes),
    }


def produce(target: Target, contestant: Contestant, settings: Settings) -> dict[str, float]:
    """On a topic of its own, which is deleted afterwards."""
    topics.create(target.bootstrap, TOPIC)
    try:
        figures = run_one(target, contestant, TOPIC, settings)
        end = topics.end_offset(target.bootstrap, TOPIC)
        if end != contestant.records + 1:  # and the first one, which came before the clock
            raise peers.PeerFailed(f"{contestant.name} -> {target.name}: a log of {end} records")
    finally:
        topics.delete(target.bootstrap, TOPIC)
    return figures


def fill(target: Target, records: int) -> None:
    topics.create(target.bootstrap, FILLED)
    run_one(target, Contestant("hmb send_many", "produce", records), FILLED, Settings(1, 5, FILL_BATCH))


def measure(
    target: Target,
    contestants: Sequence[Contestant],
    settings: Settings,
    repeat: int,
    samples: Samples,
    progress: Progress,
) -> None:
    for turn, contestant in in_turns(contestants, repeat):
        progress.step(f"{target.name}, turn {turn + 1}: {contestant.name}, {contestant.what}")
        if contestant.what == "produce":
            figures = produce(target, contestant, settings)
        else:
            figures = run_one(target, contestant, FILLED, settings)
        parameters = {"records": contestant.records, "acks": settings.acks, "batch_bytes": settings.batch_size}
        samples.add(Sample(f"clients {contestant.what}", target.name, contestant.name, turn, parameters, figures))


def tables(samples: Sequence[Sample]) -> list[Table]:
    """The rates by broker, and what was to be reached."""
    found = []
    for broker, of_broker in by(samples, lambda run: run.broker).items():
        runs = by(of_broker, lambda run: (run.suite.removeprefix("clients "), run.client))
        rows = [["", "client", "records/s", "us/record"]]
        rows += [[*key, str(spread(each, RATE)), str(spread(each, CPU))] for key, each in sorted_by_name(runs)]
        found.append(Table(f"On {broker}: records/s, and CPU time of the client's process for each", rows))
        if judged := list(judge(runs)):
            heading = ["", "goal", "", "reached", "by CPU"]
            found.append(Table(f"The goals, on {broker}", [heading, *judged]))
    return found


def sorted_by_name(runs: Mapping[tuple[str, str], list[Sample]]) -> list[tuple[tuple[str, str], list[Sample]]]:
    """In the order of PRODUCERS and CONSUMERS, whoever began."""
    order = [(each.what, each.name) for each in (*PRODUCERS, *CONSUMERS)]
    return sorted(runs.items(), key=lambda each: order.index(each[0]))


def judge(runs: Mapping[tuple[str, str], list[Sample]]) -> Iterator[list[str]]:
    """Each goal, as far as its clients ran."""
    for goal in GOALS:
        ours, theirs = runs.get((goal.what, goal.client)), runs.get((goal.what, goal.over or goal.client))
        if ours is None or theirs is None:
            continue
        if goal.over is None:
            reached = spread(ours, RATE)
            what = f"{goal.client}, at least {goal.least:,.0f} records/s"
            by_cpu = f"{1e6 / spread(ours, CPU).median:,.0f}"
        else:
            ratio, of_cpu = over(ours, theirs, RATE), over(theirs, ours, CPU)
            if ratio is None:
                continue
            reached = ratio
            what, by_cpu = f"{goal.client}, at least {goal.least:g} x {goal.over}", told(of_cpu)
        yield [goal.what, what, "met" if reached.median >= goal.least else "MISSED", str(reached), by_cpu]


def chosen(options: argparse.Namespace) -> list[Contestant]:
    wanted = [each for each in (*PRODUCERS, *CONSUMERS) if options.only in (None, each.what)]
    if options.clients:
        wanted = [each for each in wanted if any(part in each.name for part in options.clients)]
    return [Contestant(each.name, each.what, max(1_000, int(each.records * options.scale))) for each in wanted]


def table(options: argparse.Namespace, stack: ExitStack, samples: Samples) -> Iterator[str]:
    settings = Settings(options.acks, options.linger_ms, options.batch_size)
    brokers, contestants = targets(options, stack), chosen(options)
    most = max((each.records for each in contestants if each.what == "consume"), default=0)
    progress = Progress(len(brokers) * (1 + len(contestants) * options.repeat))
    yield f"100 B, acks={settings.acks}, linger {settings.linger_ms} ms, batches of {settings.batch_size:,} B"
    for target in brokers:
        progress.step(f"warm-up of {target.name}")
        produce(target, Contestant("hmb send_many", "produce", max(1_000, int(500_000 * options.scale))), settings)
        if most:
            stack.callback(topics.delete, target.bootstrap, FILLED)
            fill(target, most)
        for _, group in groupby(contestants, lambda each: each.what):
            measure(target, list(group), settings, options.repeat, samples, progress)
    progress.end()
    yield from text(tables(samples.taken))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Producers and consumers of Python side by side, in turns.")
    add_target_options(parser)
    parser.add_argument("--only", choices=["produce", "consume"], help="default: both")
    parser.add_argument("--clients", nargs="+", metavar="PART", help="only those with this in their names")
    parser.add_argument("--acks", type=int, choices=[-1, 0, 1], default=1, help="default: 1")
    parser.add_argument("--linger-ms", type=int, default=5, help="default: 5")
    parser.add_argument("--batch-size", type=at_least_one, default=262_144, help="bytes, of all producers")
    add_suite_options(parser)
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of records")
    return parser.parse_args()


def main() -> int:
    return run("clients", parse(), table)


if __name__ == "__main__":
    sys.exit(main())
