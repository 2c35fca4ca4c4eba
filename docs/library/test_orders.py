import hmb


def count_orders(servers: str, topic: str) -> int:
    """Return the number of records in a topic. The two tests in this file check this function."""
    with hmb.Consumer(servers, topic, offset="earliest", until="end") as consumer:
        return sum(1 for record in consumer)


def test_all_orders_are_counted(hmb_broker, hmb_topic, kafka_bootstrap_servers):
    hmb_broker.produce(hmb_topic, "one", "two", "three")
    assert count_orders(kafka_bootstrap_servers, hmb_topic) == 3


def test_orders_survive_a_crash_of_the_broker(hmb_broker, hmb_topic, kafka_bootstrap_servers):
    hmb_broker.produce(hmb_topic, "one")
    hmb_broker.kill()
    hmb_broker.restart()
    assert count_orders(kafka_bootstrap_servers, hmb_topic) == 1
