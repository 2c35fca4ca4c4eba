"""Tests of `Admin` for the cluster: brokers, their versions and their data directories."""

from __future__ import annotations

import pytest

import hmb
from hmb.client import TopicPartition
from hmb.client.admin import Admin, ConfigResource, ResourceType
from hmb.client.metadata import Node, parse_servers
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode, KafkaError


def test_the_brokers(servers: str) -> None:
    with Admin(servers) as admin:
        cluster = admin.describe_cluster()
        assert cluster.cluster_id
        (broker,) = cluster.brokers
        assert [Node(broker.host, broker.port)] == parse_servers(servers)
        assert cluster.controller_id == broker.broker_id == 0
        (versions,) = admin.describe_versions().values()
        assert 12 in versions.apis[ApiKey.PRODUCE]


def test_the_contents_of_data_directories(servers: str) -> None:
    with hmb.Producer(servers) as producer:
        producer.send("stored", bytes(1000), partition=1).result()
    with Admin(servers) as admin:
        ((directory,),) = admin.describe_log_dirs().values()
        assert directory.replicas[TopicPartition("stored", 1)].size > 1000
        assert directory.replicas[TopicPartition("stored", 0)].size == 0
        assert directory.error is None
        assert admin.describe_log_dirs([0]).keys() == {0}


def test_the_preferred_replica_leads_already(servers: str) -> None:
    with Admin(servers) as admin:
        admin.create_topics(["led"])
        assert admin.elect_leaders([TopicPartition("led", 0)]) == {TopicPartition("led", 0): None}
        missing = admin.elect_leaders([TopicPartition("none", 0)])[TopicPartition("none", 0)]
        assert isinstance(missing, KafkaError)
        assert missing.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_closed_client_does_not_connect_again(servers: str) -> None:
    with Admin(servers) as admin:
        admin.describe_cluster()
        admin.describe_configs([ConfigResource(ResourceType.BROKER, "0")])
        admin.list_group_offsets("closed")
    admin.close()
    for ask in (
        admin.list_topics,
        admin.describe_cluster,
        admin.describe_log_dirs,
        lambda: admin.create_topics(["closed"]),
        lambda: admin.describe_configs([ConfigResource(ResourceType.BROKER, "0")]),
        lambda: admin.describe_configs([ConfigResource(ResourceType.TOPIC, "t")]),
        lambda: admin.list_group_offsets("closed"),
        lambda: admin.list_offsets({TopicPartition("closed", 0): "latest"}),
    ):
        with pytest.raises(RuntimeError, match="the admin is closed"):
            ask()
