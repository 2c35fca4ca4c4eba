import pytest

import hmb


def test_a_full_disk_only_delays_a_record(hmb_broker, hmb_topic):
    with hmb.Producer(hmb_broker.bootstrap_servers) as producer:
        with hmb_broker.disk.full(hmb_topic):
            sent = producer.send(hmb_topic, b"one")
            with pytest.raises(TimeoutError):
                sent.result(timeout=0.5)
        sent.result(timeout=60)  # The producer repeated its request until it succeeded.


def test_a_damaged_record_is_reported(hmb_broker, hmb_topic):
    hmb_broker.produce(hmb_topic, "one")
    hmb_broker.produce(hmb_topic, "two")
    hmb_broker.disk.corrupt(hmb_topic, offset=1)
    with hmb.Consumer(hmb_broker.bootstrap_servers, hmb_topic) as consumer:
        records = iter(consumer)
        assert next(records).value == b"one"
        with pytest.raises(hmb.KafkaError, match="CORRUPT_MESSAGE"):
            next(records)
