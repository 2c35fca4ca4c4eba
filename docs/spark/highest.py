"""Finds the highest temperature of each city in a topic, and writes each new maximum to another topic.

Usage: python highest.py SERVERS CHECKPOINT

In the topic `weather`, the key of a record is a city, and the value is a temperature. The folder CHECKPOINT
stores each city's highest temperature. A restarted program continues with these temperatures.
"""

import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

import hmb.spark

servers, checkpoint = sys.argv[1:]
broker = {"kafka.bootstrap.servers": servers}
STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"  # transformWithState needs RocksDB.


class Highest(StatefulProcessor):
    """Reports each new highest temperature of a city.

    For each city, Spark stores the highest temperature so far.
    """

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state = handle.getValueState("highest", "celsius DOUBLE")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        (city,) = key
        highest = max(row.celsius for row in rows)
        if not self.state.exists() or highest > self.state.get()[0]:
            self.state.update((highest,))
            yield Row(key=city, value=str(highest))

    def close(self) -> None:
        pass


spark = hmb.spark.session("highest", config={"spark.sql.streaming.stateStore.providerClass": STORE})
records = spark.readStream.format("hmb").options(**broker, subscribe="weather", startingOffsets="earliest").load()
readings = records.selectExpr("CAST(key AS STRING) AS city", "CAST(CAST(value AS STRING) AS DOUBLE) AS celsius")
highest = readings.groupBy("city").transformWithState(Highest(), "key STRING, value STRING", "Append", "None")
query = (
    highest.writeStream.format("hmb")
    .options(**broker, topic="highest", checkpointLocation=checkpoint)
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
