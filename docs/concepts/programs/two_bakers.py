import hmb

with hmb.Broker() as broker, hmb.Admin(broker.bootstrap_servers) as admin:
    admin.create_topics([hmb.NewTopic("orders", partitions=2)])
    ann = hmb.Consumer(broker.bootstrap_servers, "orders", group="kitchen")
    ben = hmb.Consumer(broker.bootstrap_servers, "orders", group="kitchen")
    while not (ann.assignment and ben.assignment):  # The group needs a moment to share out the partitions.
        ann.poll(0.1)
        ben.poll(0.1)

    with hmb.Producer(broker.bootstrap_servers) as producer:
        for number in range(6):
            producer.send("orders", b"order %d" % number, partition=number % 2)
    for name, baker in (("Ann", ann), ("Ben", ben)):
        print(name, "bakes", [record.value.decode() for record in baker.poll(5)])
        baker.close()
