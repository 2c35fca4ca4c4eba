import hmb


def test_the_producer_works_with_kafka_2_8():
    with hmb.Broker(as_version="2.8") as broker:
        with hmb.Producer(broker.bootstrap_servers) as producer:
            producer.send("orders", b"coffee").result()
        assert [record.value for record in broker.records("orders")] == [b"coffee"]
