"""Clients that write in transactions, and Kafka's tool that describes transactions.

The requests of these programs are captured as golden files.
"""

from __future__ import annotations

import confluent_kafka

from hmb.bench import peers
from tests.conformance.java_clients import run
from tests.golden.group_and_admin_clients import SECONDS, until, write_some


def librdkafka_transactions(bootstrap: str, topic: str) -> None:
    """Copy records and commit the consumer's offsets in two transactions.

    The first transaction commits, and the second one aborts.
    """
    write_some(bootstrap, topic)
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    until(lambda: consumer.poll(0.5))
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(SECONDS)
    for commit in (True, False):
        producer.begin_transaction()
        producer.produce(f"{topic}-2", b"good night")
        position = consumer.position([confluent_kafka.TopicPartition(topic, 0)])
        producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), SECONDS)
        if commit:
            producer.commit_transaction(SECONDS)
        else:
            producer.abort_transaction(SECONDS)
    consumer.close()


def kafka_43_transactions(bootstrap: str, topic: str) -> None:
    """Copy a topic in transactions. Run Kafka's tool for transactions while a transaction is open."""
    write_some(bootstrap, topic)
    jars = peers.kafka_43_jars()
    copied = ["--input-topic", topic, "--output-topic", f"{topic}-2", "--input-partition", "0"]
    named = ["--transactional-id", topic, "--consumer-group", topic, "--max-messages", "1"]
    run(jars, "org.apache.kafka.tools.TransactionalMessageCopier", "--broker-list", bootstrap, *copied, *named)
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-open"})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce(f"{topic}-3", b"who knows")
    producer.flush(SECONDS)

    def tool(*arguments: str) -> None:
        run(jars, "org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", bootstrap, *arguments)

    tool("list")
    tool("describe", "--transactional-id", f"{topic}-open")
    where = ["--topic", f"{topic}-3", "--partition", "0"]
    tool("describe-producers", *where)
    tool("abort", *where, "--start-offset", "0")
