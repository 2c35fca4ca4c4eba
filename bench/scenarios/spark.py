"""Compares the speed of HMB's data source for Spark with the speed of Spark's own Kafka connector.

These commands are examples:
    hmb bench spark --jars DIR                      # both data sources; the connector's jars are in DIR
    hmb bench spark                                 # HMB's data source alone
    hmb bench spark --only read --partitions 2 --num-records 500000

Spark's connector needs four jars, in versions that fit the installed PySpark: spark-sql-kafka-0-10,
spark-token-provider-kafka-0-10, kafka-clients and commons-pool2.

HMB's data source and Spark's connector run in the same Spark session, with two cores. The benchmark has
four kinds of jobs:
- read: Spark reads all records of a topic, and adds up the sizes of their values. One job reads a topic
  with one partition, and another job reads a topic with two partitions.
- filter: Spark reads the records of 7.2 hours from a topic with the records of 30 days. With the option
  `pushFilters`, HMB's data source fetches only the records of these hours. Spark's connector fetches the
  whole topic. The topic has four times as many records as a topic of a read job.
- write: Spark writes rows to a topic. It writes as many rows as a read job reads. The value of a row has
  `--record-size` bytes.
- stream: a producer sends `--rate` records per second for `--seconds` seconds. Spark processes the records
  in small batches. The results are the 50th and the 99th percentile of the time for one batch.

In a filter job, a data source can skip excluded records. The rate is still the number of all records in the
topic, divided by the seconds of the query. A higher rate therefore means a faster query.

The CPU time of a run includes the JVM and all processes that the JVM has started, for example Python workers. If other
programs use the machine, the rows per CPU second are more reliable than the rows per second.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

import hmb

from .. import peers
from ..load.producers import HmbProducer
from ..load.workload import Workload
from ..measurement import POSITIVE, CommaList, Measurement, Parameters, scenario
from ..peers import topics
from ..peers.resources import tree_cpu_seconds, tree_python_peak_bytes
from ..report.distribution import percentile
from ..report.samples import Sample
from ..report.tables import counted
from ..report.view import Column, SampleView
from .produce import RATE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "hmb-bench-spark"
HMB, CONNECTOR = "hmb", "kafka"  # the names of the two data sources in Spark
SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.python.authenticate.socketTimeout": "60s",  # On a busy machine, Python workers start slowly.
}
MONTH_MS = 30 * 24 * 3_600_000  # ms; a job of the kind "filter" reads a topic with the records of this period
KINDS = ("read", "filter", "write", "stream")


@dataclass(frozen=True)
class SparkJob:
    """A job that Spark runs once with each data source."""

    kind: str  # the kind of the job, one of KINDS
    partitions: int

    def __str__(self) -> str:
        return f"{self.kind}, {counted(self.partitions, 'partition')}"


def cell(sample: Sample) -> str:
    return str(SparkJob(str(sample.parameters["kind"]), int(sample.parameters["partitions"])))


VIEW = SampleView(
    columns=(
        RATE,
        Column("records_per_cpu_second", "records per CPU second", compare=True, more_is_better=True),
        Column("p50_ms", "trigger p50, ms", spread=False, digits=0),
        Column("p99_ms", "trigger p99, ms", spread=False, digits=0),
        Column("python_worker_bytes", "Python worker, MB", 1e-6, spread=False, digits=0),
    ),
    title=lambda _: "Spark's data sources",
    cell=cell,
    contestant=lambda sample: sample.client.removeprefix("spark "),
)


@dataclass(frozen=True)
class SparkLoad:
    """The number, the size and the rate of the records that the jobs read, write and stream."""

    bootstrap: str
    records: int
    size: int  # bytes of a value
    rate: int  # records/s of a stream
    seconds: int  # duration of a stream in seconds


class SparkMeasurement:
    """A Spark session, and the costs of the jobs that it runs."""

    def __init__(self, spark: SparkSession, load: SparkLoad) -> None:
        self._spark, self._load = spark, load
        jvm: Any = spark.sparkContext._jvm  # PySpark has no public name for the JVM.
        self._jvm_pid = int(jvm.java.lang.ProcessHandle.current().pid())

    def run(self, job: SparkJob, source: str) -> dict[str, float]:
        """Run a job once with a data source, and return its figures. Raises PeerFailed if rows are missing."""
        kinds: dict[str, Callable[[SparkJob, str], dict[str, float]]] = {
            "read": self._read,
            "filter": self._filter,
            "write": self._write,
            "stream": self._stream,
        }
        cpu, started = tree_cpu_seconds(self._jvm_pid), time.perf_counter()
        figures = kinds[job.kind](job, source)
        figures.setdefault("records_per_second", figures["records"] / (time.perf_counter() - started))
        figures["records_per_cpu_second"] = figures["records"] / (tree_cpu_seconds(self._jvm_pid) - cpu)
        figures["python_worker_bytes"] = float(tree_python_peak_bytes(self._jvm_pid))
        return figures

    def fill(self, partitions: int) -> str:
        """Create a topic with `partitions` partitions, and send records to it. Return the name of the topic.

        The benchmark later measures how fast Spark reads all records of this topic.
        """
        topic = f"{TOPIC}-read-{partitions}"
        topics.create(self._load.bootstrap, topic, partitions=partitions)
        HmbProducer().run(self._load.bootstrap, topic, Workload(self._load.size, 65_536, self._load.records))
        return topic

    def _read(self, job: SparkJob, source: str) -> dict[str, float]:
        frame = self._spark.read.format(source).options(**self._options(f"{TOPIC}-read-{job.partitions}")).load()
        (row,) = frame.selectExpr("count(*)", "sum(length(value))", "max(offset)").collect()
        if (row[0], row[1]) != (self._load.records, self._load.records * self._load.size):
            raise peers.PeerFailed(f"{source} read {row[0]} rows, not {self._load.records}")
        return {"records": float(row[0])}

    @property
    def _month_records(self) -> int:
        return 4 * self._load.records

    def fill_month(self) -> str:
        """Create a topic with one partition, and send the records of 30 days to it. Return the name of the topic."""
        topic, load = f"{TOPIC}-month", self._load
        topics.create(load.bootstrap, topic, {"retention.ms": "-1"})
        with hmb.Producer(load.bootstrap) as producer:
            for first in range(0, self._month_records, 10_000):
                numbers = range(first, min(first + 10_000, self._month_records))
                timestamps = [number * MONTH_MS // self._month_records for number in numbers]
                producer.send_many(topic, [b"x" * load.size] * len(numbers), timestamps=timestamps)
        return topic

    def _filter(self, job: SparkJob, source: str) -> dict[str, float]:
        pushed = {"pushFilters": "true", "maxLateness": "0s"} if source == HMB else {}
        frame = self._spark.read.format(source).options(**self._options(f"{TOPIC}-month"), **pushed).load()
        first, end = MONTH_MS // 2, MONTH_MS // 2 + MONTH_MS // 100
        hours = frame.where(f"timestamp >= timestamp_millis({first}) AND timestamp < timestamp_millis({end})")
        (row,) = hours.selectExpr("count(*)", "sum(length(value))").collect()
        expected = self._month_records // 100
        if abs(row[0] - expected) > 1:  # The timestamps are rounded, so one row more or less is correct, too.
            raise peers.PeerFailed(f"{source} found {row[0]} rows, not {expected}")
        return {"records": float(self._month_records)}

    def _write(self, job: SparkJob, source: str) -> dict[str, float]:
        topic = f"{TOPIC}-write-{time.time_ns()}"
        topics.create(self._load.bootstrap, topic, partitions=job.partitions)
        value = f"CAST(rpad(CAST(id AS STRING), {self._load.size}, 'x') AS BINARY) AS value"
        frame = self._spark.range(0, self._load.records, 1, job.partitions).selectExpr(value)
        options = {"kafka.bootstrap.servers": self._load.bootstrap, "topic": topic}
        frame.write.format(source).options(**options).mode("append").save()
        topics.delete(self._load.bootstrap, topic)
        return {"records": float(self._load.records)}

    def _stream(self, job: SparkJob, source: str) -> dict[str, float]:
        topic = f"{TOPIC}-stream-{time.time_ns()}"
        topics.create(self._load.bootstrap, topic, partitions=job.partitions)
        stream = self._spark.readStream.format(source).options(**self._options(topic)).load()
        records = self._load.rate * self._load.seconds
        with TemporaryDirectory() as directory:
            query = stream.writeStream.format("noop").option("checkpointLocation", directory).start()
            query.processAllAvailable()
            sender = threading.Thread(target=self._send, args=(topic, records))
            sender.start()
            sender.join()
            sent = time.perf_counter()
            query.processAllAvailable()
            lag = time.perf_counter() - sent
            query.stop()
            triggers = [each["durationMs"]["triggerExecution"] for each in query.recentProgress if each["numInputRows"]]
        topics.delete(self._load.bootstrap, topic)
        triggers.sort()
        return {
            "records": float(records),
            "records_per_second": records / (self._load.seconds + lag),
            "p50_ms": float(percentile(triggers, 0.5)),
            "p99_ms": float(percentile(triggers, 0.99)),
        }

    def _send(self, topic: str, records: int) -> None:
        """Send `records` records to a topic, at a steady rate of `load.rate` records per second.

        Every 10 ms, the producer sends a group of records. A group contains a hundredth of `load.rate` records.
        """
        load = self._load
        per_call = max(1, load.rate // 100)
        started = time.perf_counter()
        with hmb.Producer(load.bootstrap) as producer:
            for first in range(0, records, per_call):
                producer.send_many(topic, [b"x" * load.size] * min(per_call, records - first))
                time.sleep(max(0.0, started + (first + per_call) / load.rate - time.perf_counter()))

    def _options(self, topic: str) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self._load.bootstrap, "subscribe": topic}


def spark_with(jars: Path | None) -> SparkSession:
    """Return a Spark session with two cores and HMB's data source.

    If `jars` is a folder, the session also loads Spark's Kafka connector from it. Raises PeerUnavailable if Spark
    is not installed, or if the folder does not contain the connector.

    Some versions of the connector need an old version of Spark. The function `hmb.spark.session` accepts only newer
    versions. Therefore `spark_with` starts Spark itself.
    """
    try:
        from pyspark.sql import SparkSession

        from hmb.spark.source import HmbDataSource
    except ImportError as missing:
        raise peers.PeerUnavailable(f"Spark is not installed: {missing}") from missing
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


@scenario("spark", VIEW)
@click.option(
    "-b", "--bootstrap-server", "bootstrap", metavar="HOST:PORT",
    help="Use this broker. Without this option, the command starts a broker of HMB.",
)  # fmt: skip
@click.option(
    "--jars", type=click.Path(path_type=Path), metavar="DIR", help="A folder with the jars of Spark's Kafka connector."
)
@click.option(
    "--only", type=CommaList(click.Choice(KINDS)), default=list(KINDS), metavar="KIND,...",
    help=f"Kinds of jobs to run: {', '.join(KINDS)}.  [default: all]",
)  # fmt: skip
@click.option(
    "--partitions", type=CommaList(POSITIVE), metavar="N,N,...",
    help="Numbers of partitions for read, write and stream jobs.  [default: 1,2 for read and write; 1 for stream]",
)  # fmt: skip
@click.option("--record-size", type=POSITIVE, default=100, show_default=True, help="Size of a value in bytes.")
@click.option("--num-records", type=POSITIVE, default=2_600_000, show_default=True)
@click.option("--rate", type=POSITIVE, default=10_000, show_default=True, help="Rate of the stream in records/s.")
@click.option("--seconds", type=POSITIVE, default=20, show_default=True, help="Duration of the stream in seconds.")
def command(
    measurement: Measurement,
    bootstrap: str | None,
    jars: Path | None,
    only: list[str],
    partitions: list[int] | None,
    record_size: int,
    num_records: int,
    rate: int,
    seconds: int,
) -> None:
    """Measure how fast Spark reads, writes and streams topics with HMB's data source and with Spark's Kafka connector.

    With --jars, each job runs alternately with HMB's data source and with Spark's connector. Without --jars, only
    HMB's data source runs. The Spark session has two cores.
    """
    stack = measurement.stack
    broker, name = bootstrap or stack.enter_context(peers.Hmb()).bootstrap, bootstrap or peers.Hmb.name
    spark = spark_with(jars)
    stack.callback(spark.stop)
    load = SparkLoad(broker, num_records, record_size, rate, seconds)
    sources, sparks = [HMB, CONNECTOR] if jars else [HMB], SparkMeasurement(spark, load)
    jobs = [SparkJob(kind, count) for kind in only for count in _partitions(kind, partitions)]
    for count in sorted({job.partitions for job in jobs if job.kind == "read"}):
        stack.callback(topics.delete, broker, sparks.fill(count))
    if "filter" in only:
        stack.callback(topics.delete, broker, sparks.fill_month())
    progress = measurement.progress(len(jobs) * len(sources) * (measurement.round_count + 1))
    for job in jobs:
        for source in sources:
            progress.step(f"warm-up: {job}, {source}")
            sparks.run(job, source)
        for number, source in measurement.rounds(sources):
            progress.step(f"round {number + 1}: {job}, {source}")
            parameters: Parameters = {"kind": job.kind, "partitions": job.partitions, "message_bytes": record_size}
            measurement.add(number, name, f"spark {source}", parameters, sparks.run(job, source))


def _partitions(kind: str, chosen: list[int] | None) -> Sequence[int]:
    """Return the partition counts for jobs of the kind `kind`. The benchmark runs one job for each count.

    For example, (1, 2) means one job on a topic with one partition, and one job on a topic with two partitions.
    `chosen` contains the counts that the user has chosen, or is None for the default. A job of the kind "filter"
    always runs on a topic with one partition.
    """
    if kind == "filter":
        return (1,)
    return chosen or ((1,) if kind == "stream" else (1, 2))
