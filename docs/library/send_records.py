import hmb

with hmb.Broker() as broker, hmb.Producer(broker.bootstrap_servers, compression="zstd") as producer:
    delivery = producer.send("weather", b"rain", key=b"Seattle", headers=[("unit", b"mm")])
    print(delivery.result())  # waits until the broker has the record

    producer.send("weather", b"fog", on_delivery=lambda delivery: print("sent:", delivery.exception() is None))
    producer.flush()

    deliveries = producer.send_many("weather", [b"sun"] * 1000)
    print(deliveries.result())
