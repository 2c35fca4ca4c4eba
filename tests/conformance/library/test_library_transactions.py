"""Tests transactions of hmb.Producer with brokers in other processes: HMB and Kafka 4.3.0."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

import hmb
from hmb.bench import peers
from hmb.client import Connection, TopicPartition
from hmb.client.group.interface import OffsetAndMetadata
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.describe_transactions import DescribeTransactionsRequest

pytestmark = pytest.mark.external

_numbers = itertools.count()


@pytest.fixture(scope="module", params=[peers.Hmb, peers.Kafka43])
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    with request.param(config={"num.partitions": "3"}) as broker:
        yield broker.bootstrap


@pytest.fixture
def name() -> str:
    """Return a new name. The test uses it for a topic, a group and a transactional id."""
    return f"name-{next(_numbers)}"


def read(bootstrap: str, topic: str) -> set[bytes | None]:
    with hmb.Consumer(bootstrap, topic, until="end", isolation_level="read_committed") as consumer:
        return {record.value for record in consumer}


def test_transactions_are_committed_and_aborted_alternately(bootstrap: str, name: str) -> None:
    with hmb.Producer(bootstrap, transactional_id=name) as producer:
        producer.init_transactions()
        for number in range(10):
            producer.begin_transaction()
            for partition in range(3):
                producer.send(name, b"%d-%d" % (number, partition), partition=partition)
            if number % 2:
                producer.flush()
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    assert read(bootstrap, name) == {b"%d-%d" % (number, part) for number in range(0, 10, 2) for part in range(3)}


def test_input_offsets_are_committed_with_the_output(bootstrap: str, name: str) -> None:
    source, sink = f"{name}-source", f"{name}-sink"
    with hmb.Producer(bootstrap) as producer:
        producer.send_many(source, [b"%d" % number for number in range(100)], partition=0).result()
    place = TopicPartition(source, 0)
    with (
        # The consumer gets the group's committed offsets only after open transactions that change them have ended.
        hmb.Consumer(
            bootstrap, source, group=name, auto_commit=False, isolation_level="read_committed"
        ) as consumer,
        hmb.Producer(bootstrap, transactional_id=name) as producer,
    ):
        producer.init_transactions()
        done = 0
        while done < 100:
            records = consumer.poll(1.0, max_records=30)
            if not records:
                continue
            with producer.transaction():
                for record in records:
                    producer.send(sink, record.value)
                after = records[-1].offset + 1
                producer.send_offsets_to_transaction({place: OffsetAndMetadata(after)}, consumer.group_metadata)
            done += len(records)
        assert consumer.committed(place)[place] == OffsetAndMetadata(100)
    assert read(bootstrap, sink) == {b"%d" % number for number in range(100)}


def test_a_newer_producer_aborts_the_transaction_of_the_older_one(bootstrap: str, name: str) -> None:
    with hmb.Producer(bootstrap, transactional_id=name) as old, hmb.Producer(bootstrap, transactional_id=name) as new:
        old.init_transactions()
        old.begin_transaction()
        old.send(name, b"old").result()
        new.init_transactions()
        with new.transaction():
            new.send(name, b"new")
        with pytest.raises(KafkaError) as caught:
            old.commit_transaction()
        assert caught.value.code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
    assert read(bootstrap, name) == {b"new"}


def test_a_refused_record_makes_its_transaction_fail(bootstrap: str, name: str) -> None:
    with hmb.Producer(bootstrap, transactional_id=name, max_request_size=4_000_000) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(name, b"small").result()
        error = producer.send(name, b"x" * 2_000_000).exception()
        assert isinstance(error, KafkaError)
        assert error.code is ErrorCode.MESSAGE_TOO_LARGE
        with pytest.raises(KafkaError, match="has failed and has to be aborted"):
            producer.commit_transaction()
        producer.abort_transaction()
        with producer.transaction():
            producer.send(name, b"next")
    assert read(bootstrap, name) == {b"next"}


def test_each_transaction_has_its_own_epoch(bootstrap: str, name: str) -> None:
    """In transaction version 2 (KIP-890), each transaction has a new epoch. HMB and Kafka support this version."""
    host, port = bootstrap.rsplit(":", 1)
    epochs = []
    with hmb.Producer(bootstrap, transactional_id=name) as producer, Connection(host, int(port)) as connection:
        producer.init_transactions()
        for number in range(4):
            producer.begin_transaction()
            producer.send(name, b"%d" % number, partition=0).result()
            described = connection.send(DescribeTransactionsRequest(transactional_ids=[name])).transaction_states[0]
            epochs.append(described.producer_epoch)
            if number % 2:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    assert epochs == list(range(epochs[0], epochs[0] + 4))
    assert read(bootstrap, name) == {b"1", b"3"}
