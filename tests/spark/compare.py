"""Runs the same queries through Spark's own Kafka connector and through `hmb`, and compares the rows.

    python -m tests.spark.compare --jars DIR            # against HMB, and against Kafka 4.3.0 if it is installed

DIR holds the jars of the connector for the installed PySpark: spark-sql-kafka-0-10, spark-token-provider-kafka-0-10,
kafka-clients and commons-pool2.

The program prints one line for each query. The first word of the line is the result of the comparison:

    equal      the connector and `hmb` return the same rows, or both refuse the query
    explained  the results differ, and `DIFFERENT` contains the reason
    DIFFERS    the results differ without a known reason, or the connector answers a query that it should refuse,
               or the connector refuses a query that it should answer
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import hmb
from hmb.bench.peers import Hmb, Kafka43, Peer, PeerUnavailable
from hmb.bench.scenarios.spark import spark_with
from hmb.client.admin import NewTopic
from hmb.protocol.topics import TopicPartition

T0 = 1_700_000_000_000
# Without this setting, retention would delete the records, because their timestamps are old.
KEEP = {"retention.ms": "-1"}
ROWS = "topic, partition, offset, hex(key), hex(value), unix_micros(timestamp), timestampType"
COMMITTED = {"kafka.isolation.level": "read_committed"}
# The reason for each query whose results differ.
DIFFERENT = {
    "misspelled option": "the connector ignores what it does not know; hmb asks whether another option was meant",
    "endingTimestamp in a stream": "the connector ignores it; hmb refuses it like the other ends",
    "negative startingTimestamp": "-1 is the end to a broker, and so the connector reads nothing; hmb refuses it",
}


@dataclass(frozen=True)
class Query:
    name: str
    options: dict[str, str]
    streams: bool = False
    columns: str = ROWS
    refuses: bool = False  # whether Spark's Kafka connector must refuse the query; otherwise it must answer


def offsets(topic: str, **by_partition: int) -> str:
    each = ", ".join(f'"{name[1:]}": {offset}' for name, offset in by_partition.items())
    return f'{{"{topic}": {{{each}}}}}'


def batch_queries() -> Iterator[Query]:
    a = {"subscribe": "a"}
    yield Query("all of a topic", a)
    yield Query("two topics", {"subscribe": "a,b"})
    yield Query("spaces and commas", {"subscribe": " a , ,b"})
    yield Query("pattern", {"subscribePattern": "[ab]"})
    yield Query("pattern of a part of the name", {"subscribePattern": "compre"})
    yield Query("assign", {"assign": '{"a": [1]}'})
    yield Query("headers", {**a, "includeHeaders": "true"}, columns=f"{ROWS}, headers")
    yield Query("count and sum", a, columns="count(*), sum(length(value)), max(offset)")
    yield Query("from offsets", {**a, "startingOffsets": offsets("a", p0=5, p1=-2)})
    yield Query(
        "between offsets", {**a, "startingOffsets": offsets("a", p0=5, p1=2)} | ending(offsets("a", p0=9, p1=-1))
    )
    yield Query("empty range", {**a, "startingOffsets": offsets("a", p0=5, p1=2)} | ending(offsets("a", p0=5, p1=2)))
    yield Query("from a time", {**a, "startingTimestamp": str(T0 + 10)})
    yield Query("to a time", {**a, "endingTimestamp": str(T0 + 10)})
    yield Query("to a time that none has reached", {**a, "endingTimestamp": str(T0 + 10**9)})
    yield Query("times by partition", {**a, "startingOffsetsByTimestamp": offsets("a", p0=T0 + 4, p1=T0)})
    yield Query("a time goes before offsets", {**a, "startingTimestamp": str(T0 + 10), "startingOffsets": "latest"})
    yield refused("too late a time", {**a, "startingTimestamp": str(T0 + 10**9)})
    late = {**a, "startingTimestamp": str(T0 + 10**9), "startingOffsetsByTimestampStrategy": "latest"}
    yield Query("too late a time, strategy latest", late)
    yield Query("minPartitions", {**a, "minPartitions": "7"})
    yield Query("maxRecordsPerPartition", {**a, "maxRecordsPerPartition": "3"})
    yield Query("both", {**a, "minPartitions": "5", "maxRecordsPerPartition": "4"})
    yield Query("case of names", {"SUBSCRIBE": "a", "STARTINGOFFSETS": "EARLIEST"})
    yield Query("compressed", {"subscribe": "compressed"})
    yield Query("an empty topic", {"subscribe": "empty"})
    yield Query("transactions, uncommitted", {"subscribe": "transactions"})
    yield Query("transactions, committed", {"subscribe": "transactions", **COMMITTED})
    yield Query("committed, minPartitions", {"subscribe": "transactions", "minPartitions": "4", **COMMITTED})
    yield Query("records deleted, from earliest", {"subscribe": "shortened"})
    yield refused("records deleted, from 0", {"subscribe": "shortened", "startingOffsets": offsets("shortened", p0=0)})
    gone = {"subscribe": "shortened", "startingOffsets": offsets("shortened", p0=0), "failOnDataLoss": "false"}
    yield Query("records deleted, from 0, go on", gone)


def ending(text: str) -> dict[str, str]:
    return {"endingOffsets": text}


def refused(name: str, options: dict[str, str], **more: Any) -> Query:
    return Query(name, options, refuses=True, **more)


def refused_queries() -> Iterator[Query]:
    a = {"subscribe": "a"}
    yield refused("no topic named", {})
    yield refused("two strategies", {**a, "assign": '{"a": [0]}'})
    yield refused("subscribe to nothing", {"subscribe": " , "})
    yield refused("unknown topic", {"subscribe": "nowhere"})
    yield refused("batch from latest", {**a, "startingOffsets": "latest"})
    yield refused("batch to earliest", {**a, "endingOffsets": "earliest"})
    yield refused("batch from -1", {**a, "startingOffsets": offsets("a", p0=-1, p1=0)})
    yield refused("bad JSON", {**a, "startingOffsets": '{"a": 5}'})
    yield refused("a partition left out", {**a, "startingOffsets": offsets("a", p0=0)})
    yield refused(
        "start after end", {**a, "startingOffsets": offsets("a", p0=9, p1=0)} | ending(offsets("a", p0=5, p1=1))
    )
    yield refused("minPartitions=0", {**a, "minPartitions": "0"})
    yield refused("auto.offset.reset", {**a, "kafka.auto.offset.reset": "earliest"})
    yield refused("key.deserializer", {**a, "kafka.key.deserializer": "x"})
    yield refused("enable.auto.commit", {**a, "kafka.enable.auto.commit": "true"})
    yield refused("bad strategy", {**a, "startingTimestamp": "1", "startingOffsetsByTimestampStrategy": "guess"})
    yield refused("bad flag", {**a, "failOnDataLoss": "perhaps"})
    yield refused("start behind the end", {**a, "startingOffsets": offsets("a", p0=500, p1=0)})
    yield Query("misspelled option", {**a, "startingOfsets": "earliest"})
    yield Query("negative startingTimestamp", {**a, "startingTimestamp": "-1"})


def streaming_queries() -> Iterator[Query]:
    a = {"subscribe": "a", "startingOffsets": "earliest"}
    yield Query("stream", a, streams=True)
    yield Query("stream, from latest", {"subscribe": "a"}, streams=True)
    yield Query("stream, limited", {**a, "maxOffsetsPerTrigger": "7"}, streams=True)
    yield Query("stream, from offsets", {**a, "startingOffsets": offsets("a", p0=5, p1=-1)}, streams=True)
    yield Query("stream, pattern", {"subscribePattern": "[ab]", "startingOffsets": "earliest"}, streams=True)
    yield Query("stream, committed", {**a, "subscribe": "transactions", **COMMITTED}, streams=True)
    yield Query("stream, minPartitions", {**a, "minPartitions": "5"}, streams=True)
    yield refused("stream with an end", {**a, "endingOffsets": "latest"}, streams=True)
    yield refused("stream, min over max", {**a, "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"}, streams=True)
    yield Query("endingTimestamp in a stream", {**a, "endingTimestamp": "1"}, streams=True)


def fill(servers: str) -> None:
    """Create topics whose records use every feature: null values, headers, several codecs, transactions."""
    with hmb.Admin(servers) as admin:
        for name, partitions in (
            ("a", 2),
            ("b", 1),
            ("compressed", 1),
            ("empty", 1),
            ("transactions", 1),
            ("shortened", 1),
        ):
            admin.create_topics([NewTopic(name, partitions, configs=KEEP)])
        with hmb.Producer(servers) as producer:
            for number in range(40):
                key, value = (
                    (None if number % 5 == 0 else b"k%d" % number),
                    (None if number % 7 == 0 else b"v" * number),
                )
                headers = [("h", b"%d" % number), ("h", None)] if number % 3 == 0 else []
                producer.send("a", value, key, partition=number % 2, timestamp=T0 + number, headers=headers)
                producer.send("b", value, key, partition=0, timestamp=T0 + number)
                producer.send("shortened", value, key, partition=0)
        with hmb.Producer(servers, compression="lz4") as producer:
            producer.send_many("compressed", [b"%d" % number * 50 for number in range(500)])
        with hmb.Producer(servers, transactional_id="compare") as producer:
            producer.init_transactions()
            for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
                producer.begin_transaction()
                for number in range(5):
                    producer.send("transactions", b"%d" % number, partition=0).result()
                end()
        admin.delete_records({TopicPartition("shortened", 0): 15})


def rows_of(spark: SparkSession, source: str, servers: str, query: Query) -> list[str] | None:
    """Return the sorted rows of a query. Return None if the source refuses the query."""
    options = {"kafka.bootstrap.servers": servers, **query.options}
    if source == "kafka":  # By default, the connector waits one minute for a missing topic.
        options |= {"kafka.request.timeout.ms": "15000", "kafka.default.api.timeout.ms": "15000"}
    try:
        frame = streamed(spark, source, options) if query.streams else batch(spark, source, options)
        found = frame.selectExpr(*query.columns.split(", ")).collect()
    except Exception as error:  # noqa: BLE001 - whatever way Spark wraps what the source says
        if os.environ.get("HMB_COMPARE_ERRORS"):
            print(f"    {source}: {' '.join(str(error).split())[:600]}", flush=True)
        return None
    return sorted(str(row) for row in found)


def batch(spark: SparkSession, source: str, options: dict[str, str]) -> DataFrame:
    return spark.read.format(source).options(**options).load()


def streamed(spark: SparkSession, source: str, options: dict[str, str]) -> DataFrame:
    """Run a stream over all available records.

    Write the rows to Parquet files, and return the content of these files.
    """
    directory = Path(tempfile.mkdtemp(prefix="hmb-compare-"))
    stream = spark.readStream.format(source).options(**options).load()
    writer = stream.writeStream.format("parquet").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(directory / "checkpoint")).start(str(directory / "rows"))
    query.awaitTermination()
    return spark.read.schema(stream.schema).parquet(str(directory / "rows"))


def compare(spark: SparkSession, broker: str, servers: str, only: str) -> Iterator[tuple[str, str]]:
    """Run each query whose name contains the text `only`, first with Spark's Kafka connector and then with `hmb`.

    For each query, yield the result of the comparison, such as "equal", and the line to print.
    """
    for query in (*batch_queries(), *refused_queries(), *streaming_queries()):
        if only not in query.name:
            continue
        theirs, ours = (rows_of(spark, source, servers, query) for source in ("kafka", "hmb"))
        verdict = "equal" if theirs == ours else "explained" if query.name in DIFFERENT else "DIFFERS"
        if (theirs is None) != query.refuses:
            verdict = "DIFFERS"
        line = f"{verdict:<10}{broker:<14}{query.name:<36}{_said(theirs)}"
        if verdict != "equal":
            line += f" / {_said(ours)}   {DIFFERENT.get(query.name, '')}"
        yield verdict, line


def _said(rows: list[str] | None) -> str:
    return "refused" if rows is None else f"{len(rows)} rows"


def main() -> int:
    parser = argparse.ArgumentParser(description="The same queries through Spark's Kafka connector and through hmb.")
    parser.add_argument("--jars", type=Path, required=True, help="the directory with the jars of the connector")
    parser.add_argument("--broker", choices=["hmb", "kafka"], action="append", help="default: both")
    parser.add_argument("--only", default="", metavar="TEXT", help="run only the queries whose names contain TEXT")
    options = parser.parse_args()
    counts: dict[str, int] = {}
    with ExitStack() as stack:
        brokers: list[Peer] = []
        for kind in (Hmb, Kafka43):
            if options.broker and ("hmb" if kind is Hmb else "kafka") not in options.broker:
                continue
            try:
                brokers.append(stack.enter_context(kind()))
            except PeerUnavailable as reason:
                print(f"without {kind.name}: {reason}", file=sys.stderr)
        spark = spark_with(options.jars)
        stack.callback(spark.stop)
        for broker in brokers:
            fill(broker.bootstrap)
            for verdict, line in compare(spark, broker.name, broker.bootstrap, options.only):
                counts[verdict] = counts.get(verdict, 0) + 1
                print(line, flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    return 1 if "DIFFERS" in counts else 0


if __name__ == "__main__":
    sys.exit(main())
