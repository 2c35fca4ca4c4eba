"""The driver process that the test kills: three streaming queries that read one topic, each with its own checkpoint.

    python -m tests.spark.kill_driver SERVERS DIRECTORY            # run until the process is killed
    python -m tests.spark.kill_driver SERVERS DIRECTORY --finish   # read to the end of the topic; print the results

The queries write to three outputs:

    parquet   topic -> files
    copy      topic -> topic, at least once
    once      topic -> topic, exactly once

A query fails if a worker or the broker dies. The driver restarts it from its checkpoint, as an operator would. At the
end each output is compared with the result of a batch query of the same topic.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hmb.spark import session
from tests.spark.kill import QUERIES, TOPIC

PAUSE = 2.0  # seconds between the failure of a query and its restart
ROWS = "300"  # records in one trigger: small, so that many batches exist that can be killed


class Job:
    """The three queries and their outputs."""

    def __init__(self, spark: SparkSession, servers: str, directory: Path) -> None:
        self.spark, self.servers, self.directory = spark, servers, directory
        self.running: dict[str, StreamingQuery] = {}

    def start(self, name: str, *, finish: bool = False) -> None:
        """Start a query. It continues from its checkpoint if it has one."""
        options = {"subscribe": TOPIC, "startingOffsets": "earliest"} | (
            {} if finish else {"maxOffsetsPerTrigger": ROWS}
        )
        rows = self.spark.readStream.format("hmb").options(**self._connected(options)).load()
        writer = self._into_parquet(rows) if name == "parquet" else self._into_topic(rows, name)
        writer = writer.option("checkpointLocation", str(self.directory / "checkpoints" / name)).queryName(name)
        writer = writer.trigger(availableNow=True) if finish else writer.trigger(processingTime="100 milliseconds")
        self.running[name] = writer.start()

    def keep_running(self) -> None:
        for name in QUERIES:
            if name in self.running and not self.running[name].isActive:
                print(f"{name}: {str(self.running.pop(name).exception())[:300]}", flush=True)
            if name not in self.running:
                self.start(name)

    def finish(self) -> None:
        """Read to the end of the topic with one query after the other.

        Queries that start together sometimes fail: Spark serializes a HashMap that another query changes, and the task
        raises OptionalDataException. A single query cannot fail in this way.
        """
        for name in QUERIES:
            self.start(name, finish=True)
            self.running[name].awaitTermination()

    def outcome(self) -> dict[str, dict[str, int]]:
        """Compare each output with the result of a batch query.

        Return the numbers of missing, repeated and unexpected rows.
        """
        batch = self._batch(TOPIC).selectExpr("concat(partition, ':', offset) AS key", "CAST(value AS STRING)")
        outputs = {
            "parquet": self.spark.read.parquet(str(self.directory / "parquet")),
            "copy": self._batch("copy"),
            "once": self._batch("once"),
        }
        found = {}
        for name, output in outputs.items():
            rows = output.selectExpr("CAST(key AS STRING) AS key", "CAST(value AS STRING) AS value")
            found[name] = {
                "expected": batch.count(),
                "rows": rows.count(),
                "missing": batch.exceptAll(rows).count(),
                "duplicates": rows.count() - rows.distinct().count(),
                "foreign": rows.subtract(batch).count(),
            }
        return found

    def _into_parquet(self, rows: DataFrame) -> DataStreamWriter:
        return self._numbered(rows).writeStream.format("parquet").option("path", str(self.directory / "parquet"))

    def _into_topic(self, rows: DataFrame, name: str) -> DataStreamWriter:
        options = {"topic": name, "exactlyOnce": str(name == "once").lower()}
        return self._numbered(rows).writeStream.format("hmb").options(**self._connected(options))

    def _numbered(self, rows: DataFrame) -> DataFrame:
        """Add a key to each row: the partition and offset of its record, so that repeated rows can be recognized."""
        return rows.selectExpr("concat(partition, ':', offset) AS key", "value")

    def _batch(self, topic: str) -> DataFrame:
        options = self._connected({"subscribe": topic, "kafka.isolation.level": "read_committed"})
        return self.spark.read.format("hmb").options(**options).load()

    def _connected(self, options: dict[str, str]) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.servers, **options}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("servers")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--finish", action="store_true")
    chosen = parser.parse_args()
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    spark = session("kill", "local[2]", settings)
    job = Job(spark, chosen.servers, chosen.directory)
    if chosen.finish:
        job.finish()
        (chosen.directory / "outcome.json").write_text(json.dumps(job.outcome()))
        return
    while True:
        job.keep_running()
        time.sleep(PAUSE)


if __name__ == "__main__":
    main()
