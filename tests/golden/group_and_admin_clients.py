"""Clients that use the APIs of groups and of administration. Their requests are captured as golden files.

Each function runs one or more clients. They connect to the servers `bootstrap` and use the topic `topic`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import confluent_kafka
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from kafka import KafkaConsumer, KafkaProducer

from hmb.bench import peers
from tests.conformance.java_clients import run
from tests.waiting import until

SECONDS = 30.0


def write_some(bootstrap: str, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    producer.send(topic, b"good morning").get(SECONDS)
    producer.close()


def kafka_python_group(bootstrap: str, topic: str, version: tuple[int, ...]) -> None:
    """Run two consumers in one group, one after the other. Each consumer joins, fetches, commits and leaves.

    Each consumer also sends heartbeats. It uses the API versions for a broker of the Kafka version `version`.
    """
    write_some(bootstrap, topic)
    _kafka_python_member(bootstrap, topic, version)
    _kafka_python_member(bootstrap, topic, version)


def _kafka_python_member(bootstrap: str, topic: str, version: tuple[int, ...]) -> None:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        api_version=version,
        client_id="kafka-python",
        group_id=topic,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=100,
    )
    until(lambda: consumer.poll(timeout_ms=500) or consumer.assignment())
    consumer.commit()
    enough = time.monotonic() + 1
    until(lambda: consumer.poll(timeout_ms=100) or time.monotonic() > enough)  # Poll long enough for heartbeats.
    consumer.close()


def librdkafka_group(bootstrap: str, topic: str, **more: str) -> None:
    write_some(bootstrap, topic)
    _librdkafka_member(bootstrap, topic, more)
    _librdkafka_member(bootstrap, topic, more)


def _librdkafka_member(bootstrap: str, topic: str, more: dict[str, str]) -> None:
    settings = {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest", **more}
    consumer = confluent_kafka.Consumer({**settings, "enable.auto.commit": "false"})
    consumer.subscribe([topic])
    until(lambda: consumer.poll(0.5) or consumer.assignment())
    consumer.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, 1, metadata="so far")], asynchronous=False)
    consumer.committed([confluent_kafka.TopicPartition(topic, 0)], SECONDS)
    enough = time.monotonic() + 4
    until(lambda: consumer.poll(0.1) or time.monotonic() > enough)
    consumer.close()


def librdkafka_admin(bootstrap: str, topic: str) -> None:
    librdkafka_group(bootstrap, topic)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(f"{topic}-2", 1, 1)])[f"{topic}-2"].result(SECONDS)
    admin.create_partitions([NewPartitions(f"{topic}-2", 2)])[f"{topic}-2"].result(SECONDS)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin.alter_configs([ConfigResource(ResourceType.TOPIC, topic, {"retention.ms": "60000"})])[resource].result(
        SECONDS
    )
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND)
    changed = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([changed])[changed].result(SECONDS)
    admin.list_consumer_groups().result(SECONDS)
    admin.describe_consumer_groups([topic])[topic].result(SECONDS)
    for future in admin.delete_records([confluent_kafka.TopicPartition(topic, 0, 1)]).values():
        future.result(SECONDS)
    admin.delete_consumer_groups([topic])[topic].result(SECONDS)


def kafka_43_tools(bootstrap: str, topic: str) -> None:
    """Run the shell tools of Kafka 4.3.0 for groups, configs, partitions and brokers."""
    write_some(bootstrap, topic)
    jars, where = peers.kafka_43_jars(), ["--bootstrap-server", bootstrap]

    def tool(name: str, *arguments: str) -> None:
        run(jars, name, *where, *arguments)

    reading = ["--topic", topic, "--group", topic, "--max-messages", "1", "--timeout-ms", "20000"]
    tool("org.apache.kafka.tools.consumer.ConsoleConsumer", *reading, "--from-beginning")
    write_some(bootstrap, topic)
    # The console consumer continues at its committed offset, and checks the leader epoch of this offset.
    tool("org.apache.kafka.tools.consumer.ConsoleConsumer", *reading)
    groups = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    tool(groups, "--list", "--state")
    tool(groups, "--describe", "--group", topic)
    tool(groups, "--delete-offsets", "--group", topic, "--topic", topic)
    tool(groups, "--delete", "--group", topic)
    tool("org.apache.kafka.tools.TopicCommand", "--describe", "--topic", topic)
    tool("org.apache.kafka.tools.TopicCommand", "--alter", "--topic", topic, "--partitions", "2")
    tool("org.apache.kafka.tools.LogDirsCommand", "--describe", "--topic-list", topic)
    entity = ["--entity-type", "topics", "--entity-name", topic]
    tool("kafka.admin.ConfigCommand", "--describe", *entity, "--all")
    tool("kafka.admin.ConfigCommand", "--alter", *entity, "--add-config", "retention.ms=60000")
    elected = ["--election-type", "preferred", "--topic", topic, "--partition", "0"]
    tool("org.apache.kafka.tools.LeaderElectionCommand", *elected)
    with tempfile.TemporaryDirectory() as folder:
        plan, records = Path(folder, "plan.json"), Path(folder, "records.json")
        partitions = f'{{"topic": "{topic}", "partition": 0, "replicas": [0]}}'
        plan.write_text(f'{{"version": 1, "partitions": [{partitions}]}}')
        records.write_text(f'{{"version": 1, "partitions": [{{"topic": "{topic}", "partition": 0, "offset": 1}}]}}')
        tool(
            "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
            "--execute",
            "--reassignment-json-file",
            str(plan),
        )
        tool("org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "--list")
        tool("org.apache.kafka.tools.DeleteRecordsCommand", "--offset-json-file", str(records))


def kafka_43_consumer_protocol(bootstrap: str, topic: str) -> None:
    """Run a member that uses the consumer protocol (KIP-848), and describe its group while the member runs."""
    write_some(bootstrap, topic)
    jars, where = peers.kafka_43_jars(), ["--bootstrap-server", bootstrap]
    name = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    settings = ["--topic", topic, "--group", topic, "--command-property", "group.protocol=consumer"]
    member = subprocess.Popen(
        peers.java(jars, name, *where, *settings, "--from-beginning"), stdout=subprocess.PIPE, stderr=sys.stderr
    )
    try:
        assert member.stdout is not None
        assert member.stdout.readline() == b"good morning\n"
        group = ["--describe", "--group", topic, "--members", "--verbose"]
        run(jars, "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", *where, *group)
    finally:
        member.terminate()
        member.wait()
