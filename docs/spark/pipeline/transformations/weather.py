"""Two tables of a pipeline: the readings of the topic `weather`, and the highest temperature of each city."""

import os

from pyspark import pipelines
from pyspark.sql import DataFrame, SparkSession, functions

spark = SparkSession.active()
servers = os.environ["HMB_BOOTSTRAP_SERVERS"]


@pipelines.table
def readings() -> DataFrame:
    """A streaming table. Each update of the pipeline appends the new records of the topic to this table."""
    records = spark.readStream.format("hmb").option("kafka.bootstrap.servers", servers).option("subscribe", "weather")
    columns = ("CAST(key AS STRING) AS city", "CAST(CAST(value AS STRING) AS DOUBLE) AS celsius")
    return records.option("startingOffsets", "earliest").load().selectExpr(*columns)


@pipelines.materialized_view
def highest() -> DataFrame:
    """A view with the highest temperature of each city. Each update of the pipeline computes the view again."""
    return spark.read.table("readings").groupBy("city").agg(functions.max("celsius").alias("highest"))
