import hmb


def test_a_consumer_commits_once(hmb_broker, hmb_topic, hmb_group, hmb_requests):
    hmb_broker.produce(hmb_topic, "one", "two")
    with hmb.Consumer(hmb_broker.bootstrap_servers, hmb_topic, group=hmb_group, until="end") as consumer:
        assert [record.value for record in consumer] == [b"one", b"two"]
    (commit,) = hmb_requests.of("OffsetCommit", topic=hmb_topic)
    assert commit.errors == () and commit.request.group_id == hmb_group


def test_a_producer_retries_after_an_error(hmb_broker, hmb_topic, hmb_requests, hmb_faults):
    hmb_faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER", times=1)
    with hmb.Producer(hmb_broker.bootstrap_servers) as producer:
        producer.send(hmb_topic, b"one")
        first, second = hmb_broker.wait_for("Produce", 2, topic=hmb_topic, timeout=10)
    assert (first.errors, second.errors) == (("NOT_LEADER_OR_FOLLOWER",), ())
