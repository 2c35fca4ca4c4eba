import hmb
from hmb.testing import SimulatedCluster


def test_the_producer_follows_the_leader():
    with SimulatedCluster(3) as cluster:
        cluster.broker.create_topic("orders")
        with hmb.Producer(cluster.bootstrap_servers) as producer:
            producer.send("orders", b"coffee").result()
            cluster.move_leader("orders", 0, node=2)
            producer.send("orders", b"tea").result()
            cluster.stop(2)
            producer.send("orders", b"milk").result()
        assert [record.value for record in cluster.broker.records("orders")] == [b"coffee", b"tea", b"milk"]
