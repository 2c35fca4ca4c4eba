"""Clients that produce and fetch two records. Each function runs one client.

The requests of these clients are captured as golden files.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import confluent_kafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError as PythonClientError

from hmb.bench import peers
from tests.conformance.java_clients import run

VALUES = [b"good morning", b"good night"]


def console_082(bootstrap: str, topic: str) -> None:
    with tempfile.NamedTemporaryFile() as lines:
        Path(lines.name).write_bytes(b"\n".join(VALUES) + b"\n")
        where = ["--broker-list", bootstrap, "--topic", topic]
        jars = peers.kafka_082_jars()
        run(jars, "kafka.tools.ConsoleProducer", *where, "--request-required-acks", "1", stdin=Path(lines.name))
        end = ["--partition", "0", "--offset", "-2", "--max-messages", "2", "--no-wait-at-logend"]
        run(jars, "kafka.tools.SimpleConsumerShell", *where, *end)


def console_43(bootstrap: str, topic: str) -> None:
    with tempfile.NamedTemporaryFile() as lines:
        Path(lines.name).write_bytes(b"\n".join(VALUES) + b"\n")
        where = ["--bootstrap-server", bootstrap, "--topic", topic]
        jars = peers.kafka_43_jars()
        run(jars, "org.apache.kafka.tools.ConsoleProducer", *where, stdin=Path(lines.name))
        end = ["--partition", "0", "--offset", "earliest", "--max-messages", "2", "--timeout-ms", "30000"]
        run(jars, "org.apache.kafka.tools.consumer.ConsoleConsumer", *where, *end)
        topics = ["--bootstrap-server", bootstrap, "--topic", f"{topic}-2"]
        run(jars, "org.apache.kafka.tools.TopicCommand", *topics, "--create", "--config", "cleanup.policy=compact")
        run(jars, "org.apache.kafka.tools.TopicCommand", *topics, "--delete")


def kafka_python(bootstrap: str, topic: str, version: tuple[int, ...]) -> None:
    """Run kafka-python. It selects the versions of its requests for a broker of the given version."""
    pinned = {"bootstrap_servers": bootstrap, "api_version": version, "client_id": "kafka-python"}
    producer = KafkaProducer(**pinned, retries=0, acks=1, enable_idempotence=False)
    futures = [producer.send(topic, value) for value in VALUES]
    with suppress(PythonClientError):  # Kafka 4 closes the connection on a Produce below version 3.
        for future in futures:
            future.get(20)
    producer.close(timeout=5)
    if version < (0, 11):
        return
    consumer = KafkaConsumer(**pinned, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, 0)])
    consumer.poll(timeout_ms=5000)
    consumer.close()


def librdkafka(bootstrap: str, topic: str) -> None:
    common: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap}
    producer = confluent_kafka.Producer({**common, "enable.idempotence": True})
    for value in VALUES:
        producer.produce(topic, value, key=b"k", headers={"h": b"v"})
    producer.flush(20)
    consumer = confluent_kafka.Consumer({**common, "group.id": "g"})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    consumer.poll(10)
    consumer.close()
    admin = AdminClient(common)
    admin.create_topics([NewTopic(f"{topic}-2", 2, 1)])[f"{topic}-2"].result(20)
    admin.delete_topics([f"{topic}-2"])[f"{topic}-2"].result(20)


def aiokafka(bootstrap: str, topic: str) -> None:
    async def produce_and_consume() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            await producer.send_and_wait(topic, VALUES[0])
        async with AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            await consumer.getone()

    asyncio.run(produce_and_consume())


OLD_KAFKA_PYTHON = """
import sys
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
pinned = {"bootstrap_servers": sys.argv[1], "api_version": (0, 11, 0), "client_id": "kafka-python"}
producer = KafkaProducer(**pinned)
producer.send(sys.argv[2], b"good morning").get(20)
producer.close()
consumer = KafkaConsumer(**pinned, auto_offset_reset="earliest")
consumer.assign([TopicPartition(sys.argv[2], 0)])
consumer.poll(timeout_ms=5000)
consumer.close()
"""


def kafka_python_202(bootstrap: str, topic: str) -> None:
    """Run kafka-python 2.0.2, a release of the year 2020. It is installed in a separate folder."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, "kafka-python==2.0.2"]
        subprocess.run(pip, check=True)
        client = [sys.executable, "-c", OLD_KAFKA_PYTHON, bootstrap, topic]
        subprocess.run(client, check=True, timeout=60, env={**os.environ, "PYTHONPATH": folder})
