import hmb

with hmb.Broker() as broker, hmb.Producer(broker.bootstrap_servers) as producer:
    producer.send_many("weather", [b"rain", b"fog", b"sun"]).result()

    with hmb.Consumer(broker.bootstrap_servers, "weather", group="readers", until="end") as consumer:
        for record in consumer:
            print(record.partition, record.offset, record.value)

    with hmb.Consumer(broker.bootstrap_servers, "weather", group="readers", until="end") as consumer:
        print("and then:", list(consumer))
