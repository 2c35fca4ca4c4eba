"""The admin clients of kafka-python, confluent-kafka and aiokafka create, change, describe and delete topics of HMB."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewPartitions as AioNewPartitions
from aiokafka.admin import NewTopic as AioNewTopic
from aiokafka.admin.config_resource import ConfigResource as AioConfigResource
from aiokafka.admin.config_resource import ConfigResourceType as AioConfigResourceType
from confluent_kafka import admin as confluent
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic

from hmb import Broker

pytestmark = pytest.mark.external

SECONDS = 30
SOURCE_TOPIC, SOURCE_DEFAULT = 1, 5


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def test_kafka_python(broker: Broker) -> None:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    try:
        client.create_topics([NewTopic("t", 2, 1, topic_configs={"retention.ms": "5000"})])
        assert client.list_topics() == ["t"]
        client.create_partitions({"t": NewPartitions(5)})
        (topic,) = client.describe_topics(["t"])
        assert [partition["leader_id"] for partition in topic["partitions"]] == [0] * 5
        assert kafka_python_setting(client, "retention.ms") == ("5000", "DYNAMIC_TOPIC_CONFIG")
        wanted = ConfigResource(ConfigResourceType.TOPIC, "t", configs={"retention.ms": "6000"})
        client.alter_configs([wanted])
        assert kafka_python_setting(client, "retention.ms") == ("6000", "DYNAMIC_TOPIC_CONFIG")
        client.reset_configs([wanted])
        assert kafka_python_setting(client, "retention.ms") == ("604800000", "DEFAULT_CONFIG")
        assert [each["broker_id"] for each in client.describe_cluster()["brokers"]] == [0]
        described = client.describe_configs([ConfigResource(ConfigResourceType.BROKER, 0)], config_filter="all")
        address = described["broker"]["0"]["advertised.listeners"]
        assert (address["value"], address["config_source"]) == (
            f"PLAINTEXT://{broker.bootstrap_servers}",
            "STATIC_BROKER_CONFIG",
        )
        assert (address["config_type"], address["read_only"], address["is_sensitive"]) == ("LIST", True, False)
        (directory,) = client.describe_log_dirs()[0]["log_dirs"]
        assert directory["log_dir"] == str(broker.data_dir.resolve())
        assert client.alter_partition_reassignments({TopicPartition("t", 0): [0]}) == {TopicPartition("t", 0): None}
        assert client.list_partition_reassignments() == {}
        client.delete_topics(["t"])
        assert client.list_topics() == []
    finally:
        client.close()


def kafka_python_setting(client: KafkaAdminClient, name: str) -> tuple[str, str]:
    described = client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "t")], config_filter="all")
    entry = described["topic"]["t"][name]
    return entry["value"], entry["config_source"]


def test_confluent_kafka(broker: Broker) -> None:
    client = confluent.AdminClient({"bootstrap.servers": broker.bootstrap_servers})

    def done(futures: dict[Any, Any]) -> Any:
        (future,) = futures.values()
        return future.result(SECONDS)

    topic = confluent.ConfigResource(confluent.ConfigResource.Type.TOPIC, "t")
    done(client.create_topics([confluent.NewTopic("t", 2, 1, config={"cleanup.policy": "compact"})]))
    done(client.create_partitions([confluent.NewPartitions("t", 5)]))
    assert sorted(client.list_topics(timeout=SECONDS).topics["t"].partitions) == [0, 1, 2, 3, 4]
    described = done(client.describe_configs([topic]))
    assert (described["cleanup.policy"].value, described["cleanup.policy"].source) == ("compact", SOURCE_TOPIC)
    assert described["retention.ms"].source == SOURCE_DEFAULT
    append = confluent.AlterConfigOpType.APPEND
    topic.add_incremental_config(confluent.ConfigEntry("cleanup.policy", "delete", incremental_operation=append))
    done(client.incremental_alter_configs([topic]))
    assert done(client.describe_configs([topic]))["cleanup.policy"].value == "compact,delete"
    replaced = confluent.ConfigResource(confluent.ConfigResource.Type.TOPIC, "t", set_config={"retention.ms": "7"})
    with pytest.warns(DeprecationWarning):
        done(client.alter_configs([replaced]))
    described = done(client.describe_configs([topic]))
    assert (described["retention.ms"].value, described["cleanup.policy"].value) == ("7", "delete")
    cluster = client.describe_cluster(request_timeout=SECONDS).result(SECONDS)
    assert [node.id for node in cluster.nodes] == [cluster.controller.id] == [0]
    names = confluent_kafka.TopicCollection(["t"])
    assert len(done(client.describe_topics(names)).partitions) == 5
    done(client.delete_topics(["t"]))
    assert "t" not in client.list_topics(timeout=SECONDS).topics


def test_confluent_kafka_gets_the_reason_of_an_error(broker: Broker) -> None:
    client = confluent.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for new, code in (
        (confluent.NewTopic("t", 1, 3), confluent_kafka.KafkaError.INVALID_REPLICATION_FACTOR),
        (confluent.NewTopic("t", 1, 1, config={"colour": "blue"}), confluent_kafka.KafkaError.INVALID_CONFIG),
        (confluent.NewTopic("a/b", 1, 1), confluent_kafka.KafkaError.TOPIC_EXCEPTION),
    ):
        with pytest.raises(confluent_kafka.KafkaException) as refused:
            client.create_topics([new])[new.topic].result(SECONDS)
        assert refused.value.args[0].code() == code


def test_aiokafka(broker: Broker) -> None:
    async def use() -> None:
        client = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        await client.start()
        try:
            await client.create_topics([AioNewTopic("t", 2, 1, topic_configs={"retention.ms": "5000"})])
            await client.create_partitions({"t": AioNewPartitions(total_count=5)})
            (topic,) = await client.describe_topics(["t"])
            assert len(topic["partitions"]) == 5
            wanted = AioConfigResource(AioConfigResourceType.TOPIC, "t", configs={"retention.ms": "6000"})
            await client.alter_configs([wanted])
            (answer,) = await client.describe_configs([AioConfigResource(AioConfigResourceType.TOPIC, "t")])
            (_, _, _, _, entries), *_ = answer.resources
            assert {entry[0]: entry[1] for entry in entries}["retention.ms"] == "6000"
            assert (await client.describe_cluster())["controller_id"] == 0
            await client.delete_topics(["t"])
            assert await client.list_topics() == []
        finally:
            await client.close()

    asyncio.run(use())
