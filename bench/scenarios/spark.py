"""Spark reads and writes topics: the data source `hmb` beside Spark's own Kafka connector, in one Spark, in turns.

    hmb bench spark --jars DIR                      # both; DIR holds the connector's jars
    hmb bench spark                                 # hmb alone
    hmb bench spark --only read --partitions 2 --num-records 500000

The jars are those of spark-sql-kafka-0-10 and what it needs beside Spark, for the PySpark that is installed:
spark-token-provider-kafka-0-10, kafka-clients, commons-pool2.  What is measured, on a Spark with two cores:

- read: all records of a topic of one and of two partitions, aggregated so that every value is looked at;
- write: as many rows of 100 B into a topic;
- stream: a producer sends --rate records/s for --seconds; the longest time that 99 of 100 triggers took, and how far
  behind the last row was.

A run's CPU time is that of the JVM, of the Python workers and of everything else that the JVM started: on a machine
that is busy with other things, rows per CPU second say more than rows per second.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import hmb

from .. import peers
from ..load.producers import HmbProducer
from ..peers import topics
from ..peers.process_tree import cpu_seconds, python_peak_bytes
from ..peers.targets import Target, add_target_options, targets
from ..progress import Progress
from ..report.samples import Sample, Samples
from ..report.tables import Table, by, by_parameters, median, over, spread, text
from ..report.turns import in_turns
from ..suite import add_suite_options, at_least_one, run
from ..thesis.cells import Cell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "hmb-bench-spark"
HMB, CONNECTOR = "hmb", "kafka"  # data sources: ours, and Spark's own
RATES = "records_per_second", "records_per_cpu_second"
GOAL_BYTES = 300_000_000  # of a Python worker
SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.authenticate.socketTimeout": "60s",  # machines may be busy
}
KINDS = ("read", "write", "stream")


@dataclass(frozen=True)
class Job:
    """One thing that both sources do."""

    kind: str
    partitions: int

    def __str__(self) -> str:
        return f"{self.kind}, {self.partitions} partition{'s' if self.partitions > 1 else ''}"


class Measured:
    """A Spark whose costs are known."""

    def __init__(self, spark: SparkSession, target: Target, options: argparse.Namespace) -> None:
        self._spark, self._target = spark, target
        self._records, self._size = options.num_records, options.record_size
        self._rate, self._seconds = options.rate, options.seconds
        jvm: Any = spark.sparkContext._jvm  # which has no name without the underscore
        self._jvm = int(jvm.java.lang.ProcessHandle.current().pid())

    def run(self, job: Job, source: str) -> dict[str, float]:
        what: dict[str, Callable[[Job, str], dict[str, float]]] = {
            "read": self._read,
            "write": self._write,
            "stream": self._stream,
        }
        cpu, began = cpu_seconds(self._jvm), time.perf_counter()
        figures = what[job.kind](job, source)
        figures.setdefault("records_per_second", figures["records"] / (time.perf_counter() - began))
        figures["records_per_cpu_second"] = figures["records"] / (cpu_seconds(self._jvm) - cpu)
        figures["python_worker_bytes"] = float(python_peak_bytes(self._jvm))
        return figures

    def fill(self, partitions: int) -> None:
        topic = f"{TOPIC}-read-{partitions}"
        topics.create(self._target.bootstrap, topic, partitions=partitions)
        HmbProducer().run(self._target.bootstrap, topic, Cell(self._size, 65_536, self._records, (0, 0, 0, 0)))

    def _read(self, job: Job, source: str) -> dict[str, float]:
        frame = self._spark.read.format(source).options(**self._options(f"{TOPIC}-read-{job.partitions}")).load()
        (row,) = frame.selectExpr("count(*)", "sum(length(value))", "max(offset)").collect()
        if (row[0], row[1]) != (self._records, self._records * self._size):
            raise peers.PeerFailed(f"{source} read {row[0]} rows, not {self._records}")
        return {"records": float(row[0])}

    def _write(self, job: Job, source: str) -> dict[str, float]:
        topic = f"{TOPIC}-write-{time.time_ns()}"
        topics.create(self._target.bootstrap, topic, partitions=job.partitions)
        value = f"CAST(rpad(CAST(id AS STRING), {self._size}, 'x') AS BINARY) AS value"
        frame = self._spark.range(0, self._records, 1, job.partitions).selectExpr(value)
        given = {"kafka.bootstrap.servers": self._target.bootstrap, "topic": topic}
        frame.write.format(source).options(**given).mode("append").save()
        topics.delete(self._target.bootstrap, topic)
        return {"records": float(self._records)}

    def _stream(self, job: Job, source: str) -> dict[str, float]:
        topic = f"{TOPIC}-stream-{time.time_ns()}"
        topics.create(self._target.bootstrap, topic, partitions=job.partitions)
        stream = self._spark.readStream.format(source).options(**self._options(topic)).load()
        records = self._rate * self._seconds
        with TemporaryDirectory() as directory:
            writer = stream.writeStream.format("noop").option("checkpointLocation", directory)
            query = writer.start()
            query.processAllAvailable()
            sender = threading.Thread(target=self._send, args=(topic, records))
            sender.start()
            sender.join()
            sent = time.perf_counter()
            query.processAllAvailable()
            behind = time.perf_counter() - sent
            query.stop()
            took = [each["durationMs"]["triggerExecution"] for each in query.recentProgress if each["numInputRows"]]
        topics.delete(self._target.bootstrap, topic)
        took.sort()
        return {
            "records": float(records),
            "records_per_second": records / (self._seconds + behind),
            "p50_ms": float(took[len(took) // 2]),
            "p99_ms": float(took[min(len(took) - 1, len(took) * 99 // 100)]),
        }

    def _send(self, topic: str, records: int) -> None:
        """A hundredth of a second's worth at a time."""
        at_once = max(1, self._rate // 100)
        began = time.perf_counter()
        with hmb.Producer(self._target.bootstrap) as producer:
            for first in range(0, records, at_once):
                producer.send_many(topic, [b"x" * self._size] * min(at_once, records - first))
                time.sleep(max(0.0, began + (first + at_once) / self._rate - time.perf_counter()))

    def _options(self, topic: str) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self._target.bootstrap, "subscribe": topic}


def jobs(options: argparse.Namespace) -> list[Job]:
    kinds = options.only or KINDS
    return [
        Job(kind, number) for kind in kinds for number in options.partitions or ((1,) if kind == "stream" else (1, 2))
    ]


def table(options: argparse.Namespace, stack: ExitStack, samples: Samples) -> Iterator[str]:
    sources = [HMB, CONNECTOR] if options.jars else [HMB]
    broker = targets(options, stack)[0]
    spark = spark_with(options.jars)
    stack.callback(spark.stop)
    measured = Measured(spark, broker, options)
    todo = jobs(options)
    progress = Progress(len(todo) * len(sources) * (options.repeat + 1))
    for number in sorted({job.partitions for job in todo if job.kind == "read"}):
        measured.fill(number)
        stack.callback(topics.delete, broker.bootstrap, f"{TOPIC}-read-{number}")
    for job in todo:
        for source in sources:
            progress.step(f"warm-up: {job}, {source}")
            measured.run(job, source)
        for turn, source in in_turns(sources, options.repeat):
            progress.step(f"turn {turn + 1}: {job}, {source}")
            figures = measured.run(job, source)
            sizes = {"kind": job.kind, "partitions": job.partitions, "message_bytes": options.record_size}
            samples.add(Sample("spark", broker.name, f"spark {source}", turn, sizes, figures))
    progress.end()
    yield from text(tables(samples.taken))


def tables(samples: Sequence[Sample]) -> list[Table]:
    found = []
    for (kind, partitions), runs in by_parameters(samples, "kind", "partitions").items():
        sources = by(runs, lambda run: run.client)
        ours, theirs = sources.get(f"spark {HMB}", []), sources.get(f"spark {CONNECTOR}", [])
        rows = [["data source", "records/s", "records per CPU second", "p50 ms", "p99 ms", "Python worker MB"]]
        for source, of_source in sources.items():
            speed = [str(spread(of_source, figure)) for figure in RATES]
            late = [median(of_source, figure, form=",.0f") for figure in ("p50_ms", "p99_ms")]
            worker = f"{spread(of_source, 'python_worker_bytes').most / 1e6:,.0f}" if of_source is ours else ""
            rows.append([source.removeprefix("spark "), *speed, *late, worker])
        if ratios := [ratio for figure in RATES if (ratio := over(ours, theirs, figure))]:
            rows.append([f"{HMB} over {CONNECTOR}", *map(str, ratios), "", "", ""])
        found.append(Table(str(Job(str(kind), int(partitions))), rows))
    return found


def spark_with(jars: Path | None) -> SparkSession:
    """A Spark with two cores, and with the connector's jars.  Raises PeerUnavailable.

    Not `hmb.spark.session`, which wants a newer Spark than there may be a connector for.
    """
    try:
        from pyspark.sql import SparkSession

        from hmb.spark.source import HmbDataSource
    except ImportError as missing:
        raise peers.PeerUnavailable(f"no Spark: {missing}") from missing
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("hmb bench")
    for name, value in {**SETTINGS, **({} if jars is None else {"spark.jars": _connector(jars)})}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(HmbDataSource)
    return spark


def _connector(jars: Path) -> str:
    found = sorted(jars.glob("*.jar"))
    if not any(jar.name.startswith("spark-sql-kafka") for jar in found):
        raise peers.PeerUnavailable(f"no spark-sql-kafka-0-10 in {jars}")
    return ",".join(str(jar.resolve()) for jar in found)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Spark with the data source hmb, beside Spark's Kafka connector.")
    add_target_options(parser)
    parser.add_argument("--jars", type=Path, metavar="DIR", help="Spark's Kafka connector, and what it needs")
    parser.add_argument("--only", choices=KINDS, action="append", help="default: all three")
    parser.add_argument("--partitions", type=at_least_one, action="append", help="default: one, and two")
    parser.add_argument("--record-size", type=at_least_one, default=100, help="bytes")
    parser.add_argument("--num-records", type=at_least_one, default=2_600_000)
    parser.add_argument("--rate", type=at_least_one, default=10_000, help="records/s of the stream")
    parser.add_argument("--seconds", type=at_least_one, default=20, help="of the stream")
    add_suite_options(parser)
    return parser.parse_args()


def main() -> int:
    return run("spark", parse(), table)


if __name__ == "__main__":
    sys.exit(main())
