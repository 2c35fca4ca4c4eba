import hmb

with hmb.Broker() as broker, hmb.Producer(broker.bootstrap_servers) as producer:
    producer.send_many("weather", [b"rain", b"fog", b"sun"]).result()
    consumer = hmb.SimpleConsumer(broker.bootstrap_servers)
    print(consumer.offsets_before("weather", 0, -1, 1))
    for record in consumer.fetch("weather", 0, 1, 1000):
        print(record.offset, record.value)
    consumer.close()
