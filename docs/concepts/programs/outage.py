import hmb

before = hmb.Broker(data_dir="shop-data").start()
port = before.listeners[0].port
producer = hmb.Producer(before.bootstrap_servers)
print("before the outage:", producer.send("orders", b"margherita").result().offset)

before.stop()
delivery = producer.send("orders", b"funghi")
print("during the outage: sent?", delivery.done())

with hmb.Broker(data_dir="shop-data", port=port):
    print("after the outage:", delivery.result().offset)
    producer.close()
