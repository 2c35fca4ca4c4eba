"""Tests of APIs for the whole cluster: ListConfigResources, DescribeQuorum, UpdateFeatures, AlterReplicaLogDirs."""

from __future__ import annotations

import pytest

from hmb.protocol.enums import ResourceType
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.describe_quorum import DescribeQuorumRequest
from hmb.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from hmb.protocol.messages.list_config_resources import ListConfigResourcesRequest
from hmb.protocol.messages.update_features import UpdateFeaturesRequest
from tests.broker.conftest import Asker

Directory = AlterReplicaLogDirsRequest.AlterReplicaLogDir
Update = UpdateFeaturesRequest.FeatureUpdateKey
Altered = IncrementalAlterConfigsRequest.AlterConfigsResource


def listed(ask: Asker, *types: int, version: int = 1) -> list[tuple[int, str]]:
    answer = ask(ListConfigResourcesRequest(resource_types=list(types)), version)
    assert answer.error_code == 0
    return [(each.resource_type, each.resource_name) for each in answer.config_resources]


def test_topics_the_broker_and_groups_with_settings_are_listed(ask: Asker) -> None:
    ask.broker.topics.create("t", 1)
    setting = Altered.AlterableConfig(name="consumer.session.timeout.ms", config_operation=0, value="50000")
    changed = Altered(resource_type=ResourceType.GROUP, resource_name="billing", configs=[setting])
    assert ask(IncrementalAlterConfigsRequest(resources=[changed]), 1).responses[0].error_code == 0
    topic, broker = (ResourceType.TOPIC, "t"), (ResourceType.BROKER, "0")
    assert set(listed(ask)) == {topic, broker, (ResourceType.BROKER_LOGGER, "0"), (ResourceType.GROUP, "billing")}
    assert listed(ask, ResourceType.TOPIC) == [topic]


def test_version_0_lists_only_client_metrics_and_there_are_none(ask: Asker) -> None:
    assert listed(ask, version=0) == []


def test_an_unknown_type_of_resource_is_an_error(ask: Asker) -> None:
    answer = ask(ListConfigResourcesRequest(resource_types=[ResourceType.BROKER, 3]), 1)
    assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])


def quorum(ask: Asker, topic: str, *partitions: int, version: int = 2) -> list[tuple[int, int, list[int]]]:
    wanted = DescribeQuorumRequest.TopicData
    numbers = [wanted.PartitionData(partition_index=number) for number in partitions]
    answer = ask(DescribeQuorumRequest(topics=[wanted(topic_name=topic, partitions=numbers)]), version)
    return [
        (each.error_code, each.leader_id, [voter.replica_id for voter in each.current_voters])
        for each in answer.topics[0].partitions
    ]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_broker_is_the_only_controller(ask: Asker, version: int) -> None:
    assert quorum(ask, "__cluster_metadata", 0, version=version) == [(ErrorCode.NONE, 0, [0])]


def test_only_the_metadata_log_has_controllers(ask: Asker) -> None:
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0, [])
    assert quorum(ask, "__cluster_metadata", 0, 1) == [unknown, unknown]
    assert quorum(ask, "t", 0) == [unknown]


@pytest.mark.parametrize(
    ("update", "code"),
    [
        (Update(feature="transaction.version", max_version_level=2), ErrorCode.NONE),
        (Update(feature="transaction.version", max_version_level=3), ErrorCode.INVALID_UPDATE_VERSION),
        (Update(feature="transaction.version", max_version_level=1, upgrade_type=2), ErrorCode.INVALID_UPDATE_VERSION),
        (Update(feature="transaction.version", max_version_level=2, upgrade_type=4), ErrorCode.INVALID_UPDATE_VERSION),
        (Update(feature="colour", max_version_level=1), ErrorCode.INVALID_UPDATE_VERSION),
    ],
)
def test_a_feature_keeps_its_version(ask: Asker, update: Update, code: ErrorCode) -> None:
    answer = ask(UpdateFeaturesRequest(feature_updates=[update]), 2)
    assert answer.error_code == code
    assert (answer.error_message is None) == (code == ErrorCode.NONE)


def test_every_feature_of_api_versions_can_be_updated_to_its_own_version(ask: Asker) -> None:
    offered = ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4).finalized_features
    updates = [Update(feature=each.name, max_version_level=each.max_version_level) for each in offered]
    answer = ask(UpdateFeaturesRequest(feature_updates=updates), 1)
    assert [(each.feature, each.error_code) for each in answer.results] == [(each.name, 0) for each in offered]


def test_a_partition_is_already_in_the_only_data_directory(ask: Asker) -> None:
    ask.broker.topics.create("t", 1)

    def move(path: str, partition: int) -> int:
        topic = Directory.AlterReplicaLogDirTopic(name="t", partitions=[partition])
        answer = ask(AlterReplicaLogDirsRequest(dirs=[Directory(path=path, topics=[topic])]), 2)
        return int(answer.results[0].partitions[0].error_code)

    own = str(ask.broker.topics.directory.resolve())
    assert move(own, 0) == ErrorCode.NONE
    assert move(own, 1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert move("/nowhere", 0) == ErrorCode.LOG_DIR_NOT_FOUND
