import hmb

PARTITION = hmb.TopicPartition("orders", 0)


def work(broker: hmb.Broker, steps: tuple[str, str], crash_at: int | None = None) -> list[str]:
    baked: list[str] = []
    group = ", then ".join(steps)
    with hmb.Consumer(broker.bootstrap_servers, "orders", group=group, auto_commit=False, until="end") as consumer:
        for record in consumer:
            for step in steps:
                if record.offset == crash_at and step == steps[1]:
                    return baked  # The crash happens between the two steps.
                if step == "bake":
                    baked.append(record.value.decode())
                else:
                    consumer.commit({PARTITION: record.offset + 1})
    return baked


with hmb.Broker() as broker, hmb.Producer(broker.bootstrap_servers) as producer:
    for number in (1, 2, 3):
        producer.send("orders", b"order %d" % number).result()
    for steps in (("commit", "bake"), ("bake", "commit")):
        print(f"{', then '.join(steps)}: {work(broker, steps, crash_at=1)} crash {work(broker, steps)}")
