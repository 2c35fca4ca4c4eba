import threading
import time

import hmb

with hmb.Broker() as broker, hmb.Producer(broker.bootstrap_servers) as producer:
    producer.send("orders", b"margherita").result()  # The record has offset 0, so the topic now ends at offset 1.
    consumer = hmb.SimpleConsumer(broker.bootstrap_servers)
    threading.Timer(1.0, producer.send, ("orders", b"funghi")).start()
    for limit in (0.5, 10.0):
        began = time.monotonic()
        records = consumer.fetch("orders", 0, offset=1, max_wait=limit)
        print(f"limit {limit} s: answered after {time.monotonic() - began:.1f} s, new records: {len(records)}")
    consumer.close()
