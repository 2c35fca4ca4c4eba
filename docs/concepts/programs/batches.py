import hmb

with hmb.Broker() as broker:
    for name, batch_size in (("one record in a batch", 1), ("batches of 16 KiB", 16384)):
        with hmb.Producer(broker.bootstrap_servers, batch_size=batch_size) as producer:
            for _ in range(2000):
                producer.send("clicks", b"x" * 100)
            producer.flush()
            metrics = producer.metrics()
        print(f"{name}: {metrics.requests_sent} requests, {metrics.batch_bytes_sent:,} bytes of batches")
