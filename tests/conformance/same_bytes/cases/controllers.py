"""Test cases for the APIs of the cluster's metadata: ListConfigResources, DescribeQuorum, UpdateFeatures and so on."""

from __future__ import annotations

from collections.abc import Mapping

from hmb.protocol.enums import ResourceType
from hmb.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from hmb.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from hmb.protocol.messages.describe_quorum import DescribeQuorumRequest
from hmb.protocol.messages.list_config_resources import ListConfigResourcesRequest
from hmb.protocol.messages.update_features import UpdateFeaturesRequest

from ..case import Case, Step, Topic, captured, case

METADATA_TOPIC = "__cluster_metadata"
TYPES: Mapping[str, list[int]] = {
    "brokers": [ResourceType.BROKER],
    "loggers": [ResourceType.BROKER_LOGGER],
    "client metrics": [ResourceType.CLIENT_METRICS],
    "groups": [ResourceType.GROUP],
    "brokers and loggers": [ResourceType.BROKER, ResourceType.BROKER_LOGGER],
    "one type twice": [ResourceType.BROKER, ResourceType.BROKER],
    "type 3": [3],
    "type 0": [0],
    "type -1": [-1],
    "brokers and type 3": [ResourceType.BROKER, 3],
}
PARTITIONS: Mapping[str, Mapping[str, list[int]]] = {
    "metadata": {METADATA_TOPIC: [0]},
    "none": {},
    "no partitions": {METADATA_TOPIC: []},
    "partition 1": {METADATA_TOPIC: [1]},
    "two partitions": {METADATA_TOPIC: [0, 1]},
    "another topic": {"three": [0]},
    "metadata and another topic": {METADATA_TOPIC: [0], "three": [0]},
    "empty name": {"": [0]},
}
Update = UpdateFeaturesRequest.FeatureUpdateKey
UPDATES: Mapping[str, list[Update]] = {
    "none": [],
    "unknown feature": [Update(feature="colour", max_version_level=1)],
    "empty name": [Update(feature="", max_version_level=1)],
    "transactions, same version": [Update(feature="transaction.version", max_version_level=2)],
    "transactions, version 3": [Update(feature="transaction.version", max_version_level=3)],
    "transactions, version -1": [Update(feature="transaction.version", max_version_level=-1)],
    "transactions, lower version": [Update(feature="transaction.version", max_version_level=1)],
    "same feature twice": [Update(feature="transaction.version", max_version_level=2)] * 2,
    "same version, and an unknown feature": [
        Update(feature="transaction.version", max_version_level=2),
        Update(feature="colour", max_version_level=1),
    ],
}
Directory = AlterReplicaLogDirsRequest.AlterReplicaLogDir
Moved = Directory.AlterReplicaLogDirTopic
MOVES: Mapping[str, Mapping[str, list[int]]] = {
    "one": {"<name>": [0]},
    "all": {"<name>": [0, 1]},
    "none": {},
    "no partitions": {"<name>": []},
    "unknown partition": {"<name>": [0, 7]},
    "unknown topic": {"nobody": [0]},
    "bad name": {"a/b": [0]},
}


def quorum(topics: Mapping[str, list[int]]) -> DescribeQuorumRequest:
    topic = DescribeQuorumRequest.TopicData
    return DescribeQuorumRequest(
        topics=[
            topic(topic_name=name, partitions=[topic.PartitionData(partition_index=number) for number in numbers])
            for name, numbers in topics.items()
        ]
    )


def move(path: str, topics: Mapping[str, list[int]]) -> AlterReplicaLogDirsRequest:
    moved = [Moved(name=name, partitions=numbers) for name, numbers in topics.items()]
    return AlterReplicaLogDirsRequest(dirs=[Directory(path=path, topics=moved)])


SIZES = ("total_bytes", "usable_bytes")  # not compared, because other programs use the disk, too


def move_cases() -> list[Case]:
    directory = Step(DescribeLogDirsRequest(topics=[]), {"directory": lambda answer: answer.results[0].log_dir})
    topics = {"<name>": Topic(partitions=2)}
    return [
        *(
            case(f"same directory, {name}", directory, move(captured("directory"), moved), topics=topics, ignored=SIZES)
            for name, moved in MOVES.items()
        ),
        *(case(f"another directory, {name}", move("/nowhere", moved), topics=topics) for name, moved in MOVES.items()),
        case("no directory", AlterReplicaLogDirsRequest(dirs=[])),
        case("relative path", move("data", MOVES["one"]), topics=topics),
        case("empty path", move("", MOVES["one"]), topics=topics),
    ]


def update_cases() -> list[Case]:
    cases = [
        case(f"update: {name}", UpdateFeaturesRequest(feature_updates=updates)) for name, updates in UPDATES.items()
    ]
    for kind in (0, 2, 3, 4):
        update = Update(feature="colour", max_version_level=1, upgrade_type=kind)
        cases.append(case(f"upgrade type {kind}", UpdateFeaturesRequest(feature_updates=[update]), versions="1+"))
    return cases


LISTS = [
    *(
        case(f"list {name}", ListConfigResourcesRequest(resource_types=types), versions="1+")
        for name, types in TYPES.items()
    ),
]
TIMES = ("last_fetch_timestamp", "last_caught_up_timestamp")
QUORUMS = [case(f"quorum: {name}", quorum(topics), may_differ=TIMES) for name, topics in PARTITIONS.items()]
# This case lists all topics, so it runs before other cases create topics.
ALL_CASES = [case("all", ListConfigResourcesRequest())]
CASES: list[Case] = [*LISTS, *QUORUMS, *update_cases(), *move_cases()]
