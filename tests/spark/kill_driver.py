"""The driver process that the test kills: a batch job and five streaming queries, each with its own checkpoint.

    python -m tests.spark.kill_driver SERVERS DIRECTORY            # run until the process is killed
    python -m tests.spark.kill_driver SERVERS DIRECTORY --finish   # read to the end of the topics; write the results

These are the six jobs. Their names are also the names of the results:

    job       input              result
    totals    orders             the number of orders and the sum of the amounts for each city, from a batch query
    windows   orders             the same two numbers for each city and each window of ten minutes, as Parquet files
    join      orders, payments   each order with the time of its payment, as Parquet files
    upsert    orders             the newest order of each customer, in a table of SQLite (foreachBatch)
    once      orders             a copy of each order in the topic `once`, written exactly once
    lambda    orders             the same rows as the job `totals`, from a batch query and a streaming query

The job `lambda` is a *lambda architecture*: it combines the results of two queries. The first is a batch query, which
computes the totals of all orders again and again. The batch query stores these totals and its end offsets in a file,
the *batch view*. The second is the streaming query `speed`, which copies each new order to the topic `speed`, at least
once.

To compute its result, the job `lambda` reads the totals in the batch view. It adds the newer orders in the topic
`speed` to these totals. An order is newer if its offset in the topic `orders` is at or above the view's end offset for
its partition. If the topic `speed` contains several copies of an order, the job counts only one copy.

The driver runs the streaming queries one after the other, again and again, each with Trigger.AvailableNow.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hmb.spark import session
from tests.spark.kill import QUERIES, VIEW
from tests.spark.orders import ORDERS, PAYABLE, PAYMENTS, WINDOW, Row

# The driver with `--finish` runs all queries up to five times. On a busy machine, a query can fail, because Spark does
# not wait long enough for the start of a worker.
ATTEMPTS = 5
ROWS = "1000"  # the largest number of records in one batch; it is small, so kills happen in many different batches
DELAY = "10 minutes"  # the watermark is the highest event time minus this delay
FIELDS = "id LONG, customer STRING, city STRING, amount LONG, time LONG"
TABLE = "CREATE TABLE IF NOT EXISTS newest (customer TEXT PRIMARY KEY, id INTEGER, amount INTEGER)"
UPSERT = """
INSERT INTO newest VALUES (?, ?, ?)
ON CONFLICT (customer) DO UPDATE SET id = excluded.id, amount = excluded.amount WHERE excluded.id > newest.id
"""


class Jobs:
    """The six jobs and their outputs."""

    def __init__(self, spark: SparkSession, servers: str, directory: Path) -> None:
        self.spark, self.servers, self.directory = spark, servers, directory
        with closing(self._database()) as database:
            database.execute(TABLE)

    def run(self, name: str) -> None:
        """Run a query until it has read the records that exist now. It continues from its checkpoint if it has one."""
        orders = self._stream(ORDERS)
        writer: DataStreamWriter = {
            "windows": lambda: self._into_files(windows(orders), name),
            "join": lambda: self._into_files(joined(orders, self._stream(PAYMENTS)), name),
            "upsert": lambda: orders.writeStream.foreachBatch(self._upsert),
            "once": lambda: self._into_topic(orders, name),
            "speed": lambda: self._into_topic(orders, name),
        }[name]()
        writer = writer.option("checkpointLocation", str(self.directory / "checkpoints" / name)).queryName(name)
        writer.trigger(availableNow=True).start().awaitTermination()

    def run_all(self, names: Iterable[str]) -> bool:
        """Run these queries one after the other. Return whether all of them have succeeded.

        A query fails if a worker or the broker dies. The next call continues such a query from its checkpoint.
        """
        has_succeeded = True
        for name in names:
            try:
                if name == VIEW:
                    self._store_view()
                else:
                    self.run(name)
            except (PySparkException, Py4JError) as error:
                print(f"{name}: {str(error)[:300]}", flush=True)
                has_succeeded = False
        return has_succeeded

    def results(self) -> dict[str, list[Row]]:
        """Return the rows of each job except `once`.

        The parent process reads the rows of the job `once` from the job's topic.
        """
        files = {name: self.spark.read.parquet(str(self.directory / name)) for name in ("windows", "join")}
        with closing(self._database()) as database:
            upserted = database.execute("SELECT customer, id, amount FROM newest").fetchall()
        return {
            "totals": merged(self._view()),
            "windows": [tuple(row) for row in files["windows"].select("start", "city", "orders", "amount").collect()],
            "join": [tuple(row) for row in files["join"].select("id", "paid_at").collect()],
            "upsert": upserted,
            "lambda": self._lambda(),
        }

    def _view(self) -> list[Row]:
        """Return `(city, number of orders, sum of amounts, partition, end offset)` for each city and partition.

        The end offset is the last offset that the batch query has read, plus one.
        """
        orders = parsed(self._batch(ORDERS)).groupBy("city", "partition")
        view = orders.agg(F.count("*"), F.sum("amount"), F.max("offset")).collect()
        ends: Counter[int] = Counter()
        for _city, partition, _count, _amount, last in view:
            ends[partition] = max(ends[partition], last + 1)
        return [(city, count, amount, partition, ends[partition]) for city, partition, count, amount, _last in view]

    def _store_view(self) -> None:
        """Compute the batch view again, and store it in place of the old view.

        The method writes a temporary file and then renames it. A rename is atomic, so after a kill at any moment, the
        file contains the complete old view or the complete new view.
        """
        temporary = self.directory / f"{VIEW}.tmp"
        temporary.write_text(json.dumps(self._view()))
        temporary.replace(self.directory / VIEW)

    def _lambda(self) -> list[Row]:
        """Return the rows of the job `lambda`: the totals in the stored batch view, plus the newer orders.

        The newer orders are in the topic `speed`. The batch query had not read them when it stored the view.
        """
        view: list[Row] = json.loads((self.directory / VIEW).read_text())
        ends = {partition: end for *_, partition, end in view}
        copies = self._batch("speed").selectExpr("CAST(key AS STRING) AS source", "value").dropDuplicates(["source"])
        speed = parsed(copies, "source").select("source", "city", "amount").collect()
        recent = []
        for source, city, amount in speed:
            partition, offset = map(int, source.split(":"))
            if offset >= ends.get(partition, 0):
                recent.append((city, 1, amount))
        return merged([*view, *recent])

    def _stream(self, topic: str) -> DataFrame:
        options = self._connected({"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": ROWS})
        return parsed(self.spark.readStream.format("hmb").options(**options).load())

    def _batch(self, topic: str) -> DataFrame:
        return self.spark.read.format("hmb").options(**self._connected({"subscribe": topic})).load()

    def _into_files(self, rows: DataFrame, name: str) -> DataStreamWriter:
        return rows.writeStream.format("parquet").option("path", str(self.directory / name))

    def _into_topic(self, orders: DataFrame, name: str) -> DataStreamWriter:
        """Add a key to each row: the partition and offset of its order, so that repeated rows can be recognized."""
        options = self._connected({"topic": name, "exactlyOnce": str(name == "once").lower()})
        rows = orders.selectExpr("concat(partition, ':', offset) AS key", "value")
        return rows.writeStream.format("hmb").options(**options)

    def _upsert(self, orders: DataFrame, batch: int) -> None:
        """Write the newest order of each customer into the table.

        Spark repeats a batch after a crash. A repeated batch changes nothing, because the table accepts only newer
        orders.
        """
        rows = [(row["customer"], row["id"], row["amount"]) for row in orders.collect()]
        with closing(self._database()) as database, database:
            database.executemany(UPSERT, rows)

    def _database(self) -> sqlite3.Connection:
        return sqlite3.connect(self.directory / "newest.db")

    def _connected(self, options: dict[str, str]) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.servers, **options}


def parsed(records: DataFrame, *columns: str) -> DataFrame:
    """Parse the JSON in the column `value` of each record.

    The result has one column for each field of the JSON, and the event time in the column `at`. It keeps the column
    `value` and the columns that `columns` names, or the columns `partition` and `offset` if `columns` is empty.
    """
    kept = columns or ("partition", "offset")
    fields = F.from_json(F.col("value").cast("string"), FIELDS).alias("record")
    return records.select(*kept, "value", fields).select(
        *kept, "value", "record.*", F.timestamp_seconds("record.time").alias("at")
    )


def windows(orders: DataFrame) -> DataFrame:
    grouped = orders.withWatermark("at", DELAY).groupBy(F.window("at", f"{WINDOW} seconds"), "city")
    counted = grouped.agg(F.count("*").alias("orders"), F.sum("amount").alias("amount"))
    return counted.select(F.unix_timestamp("window.start").alias("start"), "city", "orders", "amount")


def joined(orders: DataFrame, payments: DataFrame) -> DataFrame:
    """Join each order with its payment. If the payment is missing or too late, the column `paid_at` is null."""
    left = orders.select("id", "at").withWatermark("at", DELAY)
    right = payments.select(F.col("id").alias("paid_id"), F.col("at").alias("paid")).withWatermark("paid", DELAY)
    in_time = f"id = paid_id AND paid >= at AND paid <= at + INTERVAL {PAYABLE} SECONDS"
    rows = left.join(right, F.expr(in_time), "leftOuter")
    return rows.select("id", F.unix_timestamp("paid").alias("paid_at"))


def merged(rows: list[Row]) -> list[Row]:
    """Return one row for each city: the city, its number of orders, and the sum of its amounts.

    Each row in `rows` begins with the same three columns. If a city has several rows, the function adds their numbers.
    """
    counts: Counter[str] = Counter()
    amounts: Counter[str] = Counter()
    for city, count, amount, *_ in rows:
        counts[city] += count
        amounts[city] += amount
    return [(city, counts[city], amounts[city]) for city in counts]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("servers")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--finish", action="store_true")
    chosen = parser.parse_args()
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}
    spark = session("kill", "local[2]", settings)
    jobs = Jobs(spark, chosen.servers, chosen.directory)
    if not chosen.finish:
        while True:
            jobs.run_all([*QUERIES, VIEW])
    # The last driver does not update the batch view, so the job `lambda` needs newer orders from the topic `speed`.
    if not any(jobs.run_all(QUERIES) for _ in range(ATTEMPTS)):
        raise SystemExit(f"not all queries have succeeded in {ATTEMPTS} attempts")
    (chosen.directory / "results.json").write_text(json.dumps(jobs.results()))


if __name__ == "__main__":
    main()
