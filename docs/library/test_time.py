from datetime import timedelta

import pytest

import hmb


def test_records_expire_after_a_week(hmb_broker, hmb_clock):
    hmb_broker.create_topic("orders", config={"retention.ms": timedelta(days=7)})
    hmb_broker.produce("orders", "one")
    hmb_clock.advance(days=8)
    assert hmb_broker.records("orders") == []


def test_a_transaction_is_aborted_after_its_timeout(hmb_broker, hmb_topic, hmb_clock):
    with hmb.Producer(hmb_broker.bootstrap_servers, transactional_id="billing") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(hmb_topic, b"one").result()
        hmb_clock.advance(minutes=2)  # The timeout is one minute.
        with pytest.raises(hmb.KafkaError):
            producer.commit_transaction()


def test_the_offsets_of_a_stopped_group_expire(hmb_broker, hmb_topic, hmb_group, hmb_clock):
    hmb_broker.produce(hmb_topic, "one")
    with hmb.Consumer(hmb_broker.bootstrap_servers, hmb_topic, group=hmb_group) as consumer:
        consumer.poll(timeout=10)
        consumer.commit()
    hmb_clock.advance(days=8)
    assert hmb_broker.committed(hmb_group) == {}


def test_compaction_keeps_the_newest_price(hmb_broker, hmb_clock):
    hmb_broker.create_topic("prices", config={"cleanup.policy": "compact"})
    for price in ("10", "20", "30"):
        hmb_broker.produce("prices", price, key="tea")
    hmb_broker.compact()
    assert [record.value for record in hmb_broker.records("prices")] == [b"30"]
