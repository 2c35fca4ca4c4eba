import hmb

with hmb.Broker("data") as broker:
    broker.create_topic("addresses", config={"cleanup.policy": "compact", "segment.bytes": 300})
    for number in range(1, 7):
        broker.produce("addresses", f"Street {number}", key="ada")
        broker.produce("addresses", f"Lane {number}", key="bob")
    print("records:", len(broker.records("addresses")))
    broker.compact()
    for record in broker.records("addresses"):
        print(record.offset, record.key.decode(), record.value.decode())
