import hmb

with hmb.Broker() as broker:  # a broker in this process: free port, temporary directory
    producer = hmb.Producer(broker.bootstrap_servers)
    producer.send("greetings", b"hello").result()
    for record in hmb.Consumer(broker.bootstrap_servers, "greetings", until="end"):
        print(record.offset, record.value)
