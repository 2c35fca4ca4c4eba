"""Compares the speed of Hailstorm with other stream processors, and measures the cost of exactly-once results.

These commands are examples:
    hmb bench hailstorm                                       # 1,000,000 records, 5,000 different words
    hmb bench hailstorm --words 5000,200000                   # a small state, and a large state
    hmb bench hailstorm --only hailstorm,bytewax --records 200000

The Hailstorm paper promises exactly-once results "with little performance loss", but the paper contains no measurement
of this loss. This benchmark measures the loss.

Each stream processor counts the words of the same topic, which has two partitions on HMB's broker. If a
processor does not count all records, the benchmark ends with an error.

Each stream processor runs in its own process (`word_count.py` or `WordCount.java`). The measured CPU time
includes the startup of this process. The measured rate (records/s) excludes the startup.

The docstring of `word_count.py` lists the variants of Hailstorm. The benchmark also measures other libraries:
    bytewax, quixstreams    two libraries for Python; `pip install` installs them
    streams-at-least-once   Kafka Streams with at-least-once results; `hmb bench fetch-kafka` downloads its jars
    streams-exactly-once    Kafka Streams with exactly-once results, from the same jars
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import click

from hmb.client import Admin, NewTopic, Producer

from .. import peers
from ..errors import PeerUnavailable
from ..measurement import POSITIVE, CommaList, Measurement, scenario
from ..peers.jars import java, kafka_streams_jars
from ..peers.program import run_program
from ..report.samples import Sample
from ..report.tables import Table, ratios
from ..report.view import Cells, Column, SampleView
from ..scenarios.produce import RATE
from . import word_count

STREAMS = {"streams-at-least-once": "at_least_once", "streams-exactly-once": "exactly_once_v2"}
PROCESSORS = (*word_count.VARIANTS, "bytewax", "quixstreams", *STREAMS)
PARTITIONS = 2
JAVA_PROGRAM = Path(word_count.__file__).with_name("WordCount.java")


def cell(sample: Sample) -> str:
    return f"{sample.parameters['words']:,} different words"


class Comparison(NamedTuple):
    """Two stream processors that differ in only one property, for example with and without a combiner."""

    choice: str
    without: str
    with_it: str


COMPARISONS = (
    Comparison("Hailstorm: a snapshot every second", "hailstorm-no-snapshots", "hailstorm"),
    Comparison("Kafka Streams: exactly once", *STREAMS),
    Comparison("Hailstorm: a second process", "hailstorm-1-process", "hailstorm-2-processes"),
    Comparison("Hailstorm: a combiner, threads", "hailstorm-no-combiner", "hailstorm"),
    Comparison(
        "Hailstorm: a combiner, two processes", "hailstorm-2-processes-no-combiner", "hailstorm-2-processes"
    ),
)


class WordCountView(SampleView):
    """Makes the tables of the benchmark `hailstorm`, which compares stream processors.

    The last table compares pairs of stream processors that differ in only one property. For example, it shows the
    speed of Kafka Streams with exactly-once results, divided by its speed with at-least-once results.
    """

    def tables(self, samples: Sequence[Sample]) -> list[Table]:
        rows = [["", "", *(f"{column.label}, with / without" for column in self.columns[:2])]]
        for cell, runs in self.runs(samples).items():
            for choice, without, with_it in COMPARISONS:
                found = [ratios(runs.get(with_it, []), runs.get(without, []), it.value) for it in self.columns[:2]]
                if all(found):
                    rows.append([cell, choice, *map(str, found)])
        price = [Table("What each choice costs or gains", rows)] if rows[1:] else []
        return [*super().tables(samples), *price]

    def _summary(self, cells: Cells, columns: Sequence[Column], rounds: int) -> list[Table]:
        """Return no table, because this benchmark has its own table of ratios (see `tables`).

        The usual summary compares all stream processors with one of them. The table of this benchmark compares pairs of
        stream processors that differ in only one property, for example the delivery guarantee.
        """
        return []


VIEW = WordCountView(
    columns=(
        RATE,
        Column("client_cpu_us_per_record", "CPU, us/record", compare=True),
        Column("client_max_bytes", "peak memory, MB", 1e-6, spread=False, digits=0),
        Column("recovery_seconds", "recovery, s"),
    ),
    title=lambda sample: f"Word count over {sample.parameters['records']:,} records",
    cell=cell,
    contestant=lambda sample: sample.client,
    reference=0,
)


def available(names: list[str]) -> Iterator[str]:
    """Yield the names of the stream processors that are installed. For each other name, print what is missing."""
    for name in names:
        try:
            if name in STREAMS:
                kafka_streams_jars()
            elif name not in word_count.VARIANTS and find_spec(name) is None:
                raise PeerUnavailable(f"{name} is not installed; run `pip install {name}`")
        except PeerUnavailable as error:
            click.echo(f"without {name}: {error}", err=True)
        else:
            yield name


def fill(servers: str, records: int, words: int) -> None:
    """Create the topic, and write `records` records. Key and value of a record are the same word, for example "word42".

    There are `words` different words. Words with a small number, such as "word1", are much more frequent than words
    with a large number.
    """
    with Admin(servers) as admin:
        admin.create_topics([NewTopic(word_count.TOPIC, PARTITIONS)])
    chance = random.Random(words)
    with Producer(servers) as producer:
        for number in range(records):
            word = b"word%d" % int(chance.random() ** 3 * words)
            producer.send(word_count.TOPIC, word, word, partition=number % PARTITIONS)


def count(name: str, servers: str, records: int) -> dict[str, float]:
    """Run the stream processor `name`, and return the measured values.

    Raises PeerFailed if the number of counted words is not `records`.
    """
    command = [sys.executable, "-W", "ignore", "-m", word_count.__name__, name, servers, str(records)]
    if name in STREAMS:
        command = java(kafka_streams_jars(), str(JAVA_PROGRAM), servers, str(records), STREAMS[name])
    finished = run_program(command, name)
    found = json.loads(finished.output.splitlines()[-1])
    if (counted := found.pop("words")) != records:
        raise peers.PeerFailed(f"{name} counted {counted} of {records} words")
    cpu = {"client_cpu_us_per_record": finished.cpu_seconds / records * 1e6}
    return {**finished.costs, **cpu, **found, "records_per_second": records / found["seconds"]}


@scenario("hailstorm", VIEW)
@click.option("--records", type=POSITIVE, default=1_000_000, show_default=True, help="The number of records.")
@click.option(
    "--words", type=CommaList(POSITIVE), default=[5_000], metavar="N,N,...",
    help="For each N, measure an input with N different words.  [default: 5000]",
)  # fmt: skip
@click.option(
    "--only", type=CommaList(click.Choice(PROCESSORS)), default=list(PROCESSORS), metavar="NAME,NAME,...",
    help=f"The processors to measure: {', '.join(PROCESSORS)}.  [default: all]",
)  # fmt: skip
def command(measurement: Measurement, records: int, words: list[int], only: list[str]) -> None:
    """Measure how fast Hailstorm, bytewax, quixstreams and Kafka Streams count words.

    In each round, these programs run one after another. They all read the same topic on HMB's broker.
    """
    names = list(available(only))
    progress = measurement.progress(len(names) * len(words) * measurement.round_count)
    for different in words:
        broker = peers.Hmb()
        try:
            broker.start()
            fill(broker.bootstrap, records, different)
            for number, name in measurement.rounds(names):
                progress.step(f"{different:,} words, round {number + 1}, {name}")
                figures = count(name, broker.bootstrap, records)
                measurement.add(number, broker.name, name, {"records": records, "words": different}, figures)
        finally:
            broker.stop()
            broker.remove()
