import pytest

import hmb


def test_a_retry_writes_the_record_once(hmb_broker, hmb_topic, hmb_faults):
    fault = hmb_faults.add("PRODUCE", cut="after", times=1)  # The record is appended, but the response is lost.
    with hmb.Producer(hmb_broker.bootstrap_servers) as producer:
        producer.send(hmb_topic, b"one").result()
    assert fault.count == 1
    assert [record.value for record in hmb_broker.records(hmb_topic)] == [b"one"]


def test_a_refused_topic_is_reported(hmb_broker, hmb_topic, hmb_faults):
    hmb_faults.add("PRODUCE", topic=hmb_topic, error="TOPIC_AUTHORIZATION_FAILED")
    with hmb.Producer(hmb_broker.bootstrap_servers) as producer, pytest.raises(hmb.KafkaError):
        producer.send(hmb_topic, b"one").result()
