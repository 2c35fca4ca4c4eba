"""Counts the records of a topic by key.

Usage: python job.py MASTER SERVERS DIRECTORY

Each run of this program reads only the records that earlier runs have not read.
"""

import sys

import hmb.spark

master, servers, directory = sys.argv[1:]

spark = hmb.spark.session("counts", master)
broker = {"kafka.bootstrap.servers": servers}
records = spark.readStream.format("hmb").options(**broker, subscribe="events", startingOffsets="earliest").load()
query = (
    records.selectExpr("CAST(key AS STRING) AS key", "partition", "offset")
    .writeStream.format("parquet")
    .option("path", f"{directory}/records")
    .option("checkpointLocation", f"{directory}/checkpoint")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
counts = spark.read.parquet(f"{directory}/records").groupBy("key").count().orderBy("key")
print({row["key"]: row["count"] for row in counts.collect()}, "on", spark.conf.get("spark.master"))
