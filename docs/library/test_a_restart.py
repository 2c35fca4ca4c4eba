from datetime import timedelta

import hmb

settings = {"num.partitions": 1, "log.retention.ms": timedelta(days=1)}  # A value may be a number or a timedelta.
with hmb.Broker(config=settings) as broker:
    broker.produce("orders", "one", "two")  # writes two records to the topic `orders`
    with hmb.Consumer(broker.bootstrap_servers, "orders", group="billing", offset="earliest") as consumer:
        records = iter(consumer)
        next(records), next(records)
        consumer.commit()

    broker.kill()  # acts like `kill -9`: the broker syncs nothing
    broker.restart()  # uses the same port and the same directory

    print([record.value for record in broker.records("orders")])  # shows that the broker still has both records
    print(broker.committed("billing"))
    broker.reset()
    print(broker.topics())
