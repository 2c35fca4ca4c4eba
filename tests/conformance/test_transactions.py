"""Tests of exactly-once processing with real clients.

Each client copies the records of one topic to a second topic in transactions. The client also commits its consumer
offsets in these transactions. The client aborts some of the transactions and then copies their records again.

A consumer with read_committed must read exactly one copy of each record from the second topic. A consumer with
read_uncommitted also reads the copies from aborted transactions.

Two tests run tools of Kafka 4.3.0. The tool kafka-transactions lists, describes and aborts open transactions on HMB.
The tool DumpLogSegments reads the journal of HMB's transaction coordinator.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import confluent_kafka
import kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import TopicPartition

from hmb.bench import peers
from tests.conformance.groups.kinds import fetched
from tests.conformance.java_clients import run
from tests.conformance.tools.shell_tools import ShellTools

pytestmark = pytest.mark.external

RECORDS, AT_ONCE, SECONDS = 300, 50, 30.0
VALUES = [b"%d" % number for number in range(RECORDS)]
COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
Copier = Callable[[str, str, str], None]  # (bootstrap servers, source topic, topic of the copy)


def copy_by_librdkafka(bootstrap: str, source: str, copy: str) -> None:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": copy, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    consumer.subscribe([source])
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": copy})
    producer.init_transactions(SECONDS)
    done, aborts = 0, True
    while done < RECORDS:
        messages = consumer.consume(AT_ONCE, 1.0)
        if not messages:
            continue
        producer.begin_transaction()
        for message in messages:
            producer.produce(copy, message.value())
        positions = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), SECONDS)
        if aborts:
            producer.flush(SECONDS)
            producer.abort_transaction(SECONDS)
            for partition in consumer.committed(consumer.assignment(), SECONDS):
                consumer.seek(TopicPartition(source, partition.partition, max(0, partition.offset)))
        else:
            producer.commit_transaction(SECONDS)
            done += len(messages)
        aborts = not aborts
    consumer.close()


def copy_by_kafka_python(bootstrap: str, source: str, copy: str) -> None:
    here = kafka.TopicPartition(source, 0)
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id=copy, enable_auto_commit=False)
    consumer.assign([here])
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=copy)
    producer.init_transactions()
    position, aborts = 0, True
    while position < RECORDS:
        consumer.seek(here, position)
        records = consumer.poll(timeout_ms=1000, max_records=AT_ONCE).get(here, [])
        if not records:
            continue
        producer.begin_transaction()
        for record in records:
            producer.send(copy, record.value)
        read = kafka.structs.OffsetAndMetadata(records[-1].offset + 1, "", -1)
        producer.send_offsets_to_transaction({here: read}, copy)
        producer.flush(SECONDS)
        if aborts:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
        position = consumer.committed(here) or 0
        aborts = not aborts
    producer.close(5)
    consumer.close()


def copy_by_aiokafka(bootstrap: str, source: str, copy: str) -> None:
    asyncio.run(_copy_by_aiokafka(bootstrap, source, copy))


async def _copy_by_aiokafka(bootstrap: str, source: str, copy: str) -> None:
    from aiokafka import TopicPartition

    here = TopicPartition(source, 0)
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=copy, enable_auto_commit=False)
    consumer.assign([here])
    async with consumer, AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=copy) as producer:
        position, aborts = 0, True
        while position < RECORDS:
            consumer.seek(here, position)
            records = (await consumer.getmany(timeout_ms=1000, max_records=AT_ONCE)).get(here, [])
            if not records:
                continue
            await producer.begin_transaction()
            for record in records:
                await producer.send(copy, record.value)
            await producer.send_offsets_to_transaction({here: records[-1].offset + 1}, copy)
            await producer.flush()
            await (producer.abort_transaction() if aborts else producer.commit_transaction())
            position = await consumer.committed(here) or 0
            aborts = not aborts


def copy_by_java(
    bootstrap: str, source: str, copy: str, *, folder: Callable[[], Path], more: tuple[str, ...] = ()
) -> None:
    places = ["--input-topic", source, "--input-partition", "0", "--output-topic", copy]
    names = ["--transactional-id", copy, "--consumer-group", copy, "--transaction-size", str(AT_ONCE)]
    run(folder(), COPIER, "--broker-list", bootstrap, *places, *names, "--enable-random-aborts", *more)


COPIERS: dict[str, Copier] = {
    "librdkafka": copy_by_librdkafka,
    "kafka-python": copy_by_kafka_python,
    "aiokafka": copy_by_aiokafka,
    "java-4.3.0": partial(copy_by_java, folder=peers.kafka_43_jars),
    "java-2.8.2": partial(copy_by_java, folder=partial(fetched, "java-2.8.2")),
    "java-2.8.2-group": partial(
        copy_by_java, folder=partial(fetched, "java-2.8.2"), more=("--group-mode", "--use-group-metadata")
    ),
    "java-0.11.0.3": partial(copy_by_java, folder=partial(fetched, "java-0.11.0.3")),
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[peers.Hmb]:
    config = {"group.initial.rebalance.delay.ms": "0", "transaction.state.log.num.partitions": "1"}
    with peers.Hmb(tmp_path_factory.mktemp("transactions"), config=config) as hmb:
        yield hmb


def read(bootstrap: str, topic: str, isolation: str) -> list[bytes | None]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": isolation}
        | {"enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes | None] = []
    try:
        while (message := consumer.poll(SECONDS)) is not None:
            error = message.error()
            if error is None:
                found.append(message.value())
            elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                return found
        raise AssertionError(f"the end of {topic} was not seen, after {len(found)} records")
    finally:
        consumer.close()


@pytest.mark.parametrize("client", COPIERS)
def test_a_topic_is_copied_exactly_once(broker: peers.Hmb, client: str) -> None:
    source, copy = f"source-{client}", f"copy-{client}"
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    for value in VALUES:
        producer.produce(source, value)
    assert producer.flush(SECONDS) == 0
    COPIERS[client](broker.bootstrap, source, copy)
    assert read(broker.bootstrap, copy, "read_committed") == VALUES
    everything = read(broker.bootstrap, copy, "read_uncommitted")
    assert set(everything) == set(VALUES)
    if not client.startswith("java"):  # The Java client aborts at random, so it may abort nothing.
        assert len(everything) > RECORDS


@pytest.fixture(scope="module")
def tools(broker: peers.Hmb, kafka_43: Path) -> Iterator[ShellTools]:
    with ShellTools(broker.bootstrap) as started:
        yield started


def test_kafka_transactions_describes_and_aborts_open_transactions(broker: peers.Hmb, tools: ShellTools) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": "left open", "log_level": 0}
    )
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce("hanging", b"who knows", partition=0)
    producer.flush(SECONDS)
    where = ("--topic", "hanging", "--partition", "0")

    def run_tool(*arguments: str) -> list[list[str]]:
        result = tools.run("kafka-transactions", *arguments)
        assert result.code == 0, result.output
        return result.rows()

    assert any(row[:2] == ["left", "open"] and "Ongoing" in row for row in run_tool("list"))
    (described,) = run_tool("describe", "--transactional-id", "left open")[1:]
    assert {"Ongoing", "hanging-0"} <= set(described)
    (known,) = run_tool("describe-producers", *where)[1:]
    assert known[-1] == "0", "where its transaction begins"
    assert run_tool("find-hanging", "--broker-id", "0", "--max-transaction-timeout", "0")[1:] == []
    assert read(broker.bootstrap, "hanging", "read_committed") == []
    run_tool("abort", *where, "--start-offset", "0")
    (known,) = run_tool("describe-producers", *where)[1:]
    assert known[-1] == "None"
    run_tool("forceTerminateTransaction", "--transactionalId", "left open")
    (described,) = run_tool("describe", "--transactional-id", "left open")[1:]
    assert "Ongoing" not in described


def test_kafka_reads_the_journal(broker: peers.Hmb, kafka_43: Path) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "noted"})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce("noted", b"x", partition=0)
    producer.commit_transaction(SECONDS)
    (path,) = (broker.data_dir / "__transaction_state-0").glob("*.log")
    arguments: list[Any] = ["--files", str(path), "--transaction-log-decoder"]
    output = run(kafka_43, "org.apache.kafka.tools.DumpLogSegments", *arguments).decode()
    states = [
        json.loads(line.partition("payload: ")[2])["data"]["transactionStatus"]
        for line in output.splitlines()
        if '"noted"' in line.partition("payload: ")[0]
    ]
    assert states == [0, 1, 2, 4], "Empty, Ongoing, PrepareCommit, CompleteCommit"
