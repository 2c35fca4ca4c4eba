import hmb
import hmb.spark

with hmb.Broker() as broker:
    with hmb.Producer(broker.bootstrap_servers) as producer:
        for city, weather in (b"Seattle", b"rain"), (b"San Francisco", b"fog"), (b"Seattle", b"sun"):
            producer.send("weather", weather, city)
    spark = hmb.spark.session()
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "weather"}
    records = spark.read.format("hmb").options(**options).load()
    records.groupBy(records.key.cast("string").alias("city")).count().orderBy("city").show()
