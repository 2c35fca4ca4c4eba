"""Test cases for the APIs of partitions, replicas, log directories and the cluster, for example CreatePartitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hmb.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from hmb.protocol.messages.create_partitions import CreatePartitionsRequest
from hmb.protocol.messages.describe_cluster import DescribeClusterRequest
from hmb.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from hmb.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from hmb.protocol.messages.elect_leaders import ElectLeadersRequest
from hmb.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from hmb.protocol.messages.metadata import MetadataRequest

from ..case import Case, Step, Topic, case

Wanted = CreatePartitionsRequest.CreatePartitionsTopic
Assignment = Wanted.CreatePartitionsAssignment
Cursor = DescribeTopicPartitionsRequest.Cursor
OWN = {"<name>": Topic(partitions=2)}
ASSIGNMENTS: Mapping[str, list[list[int]]] = {
    "good": [[0]],
    "empty": [],
    "too many": [[0], [0]],
    "no broker": [[]],
    "wrong broker": [[9]],
    "negative broker": [[-1]],
    "broker twice": [[0, 0]],
    "two brokers": [[0, 9]],
}
PLACES: Mapping[str, Mapping[str, list[int]]] = {
    "one": {"filled": [0]},
    "several": {"three": [0, 2], "filled": [0]},
    "none": {},
    "no partitions": {"three": []},
    "unknown topic": {"nobody": [0]},
    "unknown partition": {"three": [0, 9, -1]},
    "same partition twice": {"three": [0, 0]},
    "bad name": {"a/b": [0]},
}
Numbers = Mapping[str, list[int]]


def more(count: int, name: str = "<name>", brokers: list[list[int]] | None = None) -> Wanted:
    assignments = None if brokers is None else [Assignment(broker_ids=ids) for ids in brokers]
    return Wanted(name=name, count=count, assignments=assignments)


def create(*topics: Wanted, validate_only: bool = False, timeout: int = 30_000) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(topics=list(topics), timeout_ms=timeout, validate_only=validate_only)


def counted(count: int) -> Step:
    """Return a step that waits until the topic has `count` partitions."""
    return Step(
        MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="<name>")]),
        until=lambda answer: len(answer.topics[0].partitions) == count,
    )


def create_case(name: str, *topics: Wanted, **options: Any) -> Case:
    """Make a test case for CreatePartitions with `validate_only`, so that no topic gets more partitions."""
    return case(name, create(*topics, validate_only=True, **options))


def two(count: int, brokers: list[list[int]] | None = None) -> Wanted:
    return more(count, "two", brokers)


def elect(topics: Numbers | None, kind: int = 0, timeout: int = 30_000) -> ElectLeadersRequest:
    places = None
    if topics is not None:
        places = [ElectLeadersRequest.TopicPartitions(topic=n, partitions=numbers) for n, numbers in topics.items()]
    return ElectLeadersRequest(election_type=kind, topic_partitions=places, timeout_ms=timeout)


def reassign(
    topics: Mapping[str, Mapping[int, list[int] | None]], **options: Any
) -> AlterPartitionReassignmentsRequest:
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic
    return AlterPartitionReassignmentsRequest(
        topics=[
            topic(
                name=name,
                partitions=[topic.ReassignablePartition(partition_index=n, replicas=r) for n, r in places.items()],
            )
            for name, places in topics.items()
        ],
        **options,
    )


def reassignments(topics: Numbers | None) -> ListPartitionReassignmentsRequest:
    topic = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    places = None if topics is None else [topic(name=n, partition_indexes=numbers) for n, numbers in topics.items()]
    return ListPartitionReassignmentsRequest(topics=places)


def log_dirs(topics: Numbers | None) -> DescribeLogDirsRequest:
    topic = DescribeLogDirsRequest.DescribableLogDirTopic
    places = None if topics is None else [topic(topic=n, partitions=numbers) for n, numbers in topics.items()]
    return DescribeLogDirsRequest(topics=places)


def describe(*names: str, limit: int = 2000, cursor: Cursor | None = None) -> DescribeTopicPartitionsRequest:
    topics = [DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names]
    return DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit, cursor=cursor)


def at(topic: str, partition: int) -> Cursor:
    return Cursor(topic_name=topic, partition_index=partition)


CREATE = [
    case("none", create()),
    case("more", create(more(4)), counted(4), topics=OWN, versions="1,3", api_key=CreatePartitionsRequest.api_key),
    case(
        "more, assigned",
        create(more(3, brokers=[[0]])),
        counted(3),
        topics=OWN,
        versions="3",
        api_key=CreatePartitionsRequest.api_key,
    ),
    case("more, timeout 0", create(more(4), timeout=0), topics=OWN, versions="3"),
    case("unknown topic, timeout 0", create(more(4, "nobody"), timeout=0)),
    create_case("one more", two(3)),
    *(create_case(f"count {count}", two(count)) for count in (2, 1, 0, -1, -(2**31), 10_002, 10_003, 100_000)),
    create_case("unknown topic", more(4, "nobody")),
    create_case("bad name", more(4, "a/b")),
    create_case("empty name", more(4, "")),
    create_case("internal topic", more(60, "__consumer_offsets")),
    create_case("twice the same", two(3), two(4)),
    create_case("known and unknown", two(3), more(3, "nobody")),
    create_case("lower, assigned", two(1, [[0]])),
    create_case("equal, assigned", two(2, [])),
    *(create_case(f"assignment {what}", two(3, brokers)) for what, brokers in ASSIGNMENTS.items()),
]
# The responses to these requests contain all topics, so these cases run before all cases that create topics.
ALL_CASES = [
    case("all", elect(None)),
    case("unclean, all", elect(None, 1), versions="1+"),
]
ELECT = [
    case("none", elect({})),
    case("one", elect({"three": [0]})),
    case("several", elect({"three": [0, 1], "empty": [0]})),
    case("no partitions", elect({"three": []})),
    case("unknown topic", elect({"nobody": [0]})),
    case("unknown partition", elect({"three": [0, 9]})),
    case("negative partition", elect({"three": [-1]})),
    case("same partition twice", elect({"three": [0, 0]})),
    case("bad name", elect({"a/b": [0]})),
    case("timeout 0", elect({"three": [0]}, timeout=0)),
    case("unclean", elect({"three": [0]}, 1), versions="1+"),
    case("unclean, unknown topic", elect({"nobody": [0]}, 1), versions="1+"),
    case("kind 2", elect({"three": [0]}, 2), versions="1+"),
    case("kind -1", elect({"three": [0]}, -1), versions="1+"),
]
REASSIGN = [
    case("none", reassign({})),
    case("as it is", reassign({"three": {0: [0]}})),
    case("cancel", reassign({"three": {0: None}})),
    case("no replicas", reassign({"three": {0: []}})),
    case("wrong broker", reassign({"three": {0: [9]}})),
    case("two brokers", reassign({"three": {0: [0, 9]}})),
    case("broker twice", reassign({"three": {0: [0, 0]}})),
    case("negative broker", reassign({"three": {0: [-1]}})),
    case("unknown topic", reassign({"nobody": {0: [0]}})),
    case("unknown topic, cancel", reassign({"nobody": {0: None}})),
    case("unknown partition", reassign({"three": {0: [0], 9: [0], -1: [0]}})),
    case("unknown partition, cancel", reassign({"three": {9: None}})),
    case("no partitions", reassign({"three": {}})),
    case(
        "no change of the factor", reassign({"three": {0: [0]}}, allow_replication_factor_change=False), versions="1+"
    ),
    case(
        "no change of the factor, two brokers",
        reassign({"three": {0: [0, 9]}}, allow_replication_factor_change=False),
        versions="1+",
    ),
    case("timeout 0", reassign({"three": {0: [0]}}, timeout_ms=0)),
    case("all", reassignments(None)),
    case("none", reassignments({})),
    case("one", reassignments({"three": [0]})),
    case("unknown topic", reassignments({"nobody": [0]})),
    case("unknown partition", reassignments({"three": [9, -1]})),
    case("no partitions", reassignments({"three": []})),
]
# The sizes, the disks and the path of the directory differ between the brokers.
LOG_DIRS = [
    case(name, log_dirs(topics), ignored=["log_dir", "total_bytes", "usable_bytes", "partition_size"])
    for name, topics in PLACES.items()
]
CLUSTER = [
    case("plain", DescribeClusterRequest()),
    case("operations", DescribeClusterRequest(include_cluster_authorized_operations=True)),
    case("controllers", DescribeClusterRequest(endpoint_type=2), versions="1+"),
    case("endpoints 0", DescribeClusterRequest(endpoint_type=0), versions="1+"),
    case("endpoints 3", DescribeClusterRequest(endpoint_type=3), versions="1+"),
    case("endpoints -1", DescribeClusterRequest(endpoint_type=-1), versions="1+"),
    case("fenced brokers", DescribeClusterRequest(include_fenced_brokers=True), versions="2+"),
    case(
        "fenced brokers of controllers",
        DescribeClusterRequest(endpoint_type=2, include_fenced_brokers=True),
        versions="2+",
    ),
]
TOPIC_PARTITIONS = [
    case("one", describe("three")),
    case("several", describe("three", "filled", "empty")),
    case("unknown", describe("nobody")),
    case("known and unknown", describe("three", "nobody")),
    case("twice the same", describe("three", "three")),
    case("bad name", describe("a/b")),
    case("empty name", describe("")),
    *(
        case(f"limit {limit}", describe("three", "filled", limit=limit))
        for limit in (0, 1, 2, 3, 4, -1, 2001, 2**31 - 1)
    ),
    case("cursor", describe("three", "filled", cursor=at("three", 1))),
    case("cursor and limit", describe("three", "filled", cursor=at("three", 1), limit=1)),
    case("cursor at the end", describe("three", "filled", cursor=at("three", 3))),
    case("cursor beyond the end", describe("three", "filled", cursor=at("three", 9))),
    case("cursor, negative", describe("three", cursor=at("three", -1))),
    case("cursor of another topic", describe("three", "filled", cursor=at("nobody", 1))),
    case("cursor after all topics", describe("three", "filled", cursor=at("zzz", 0))),
    case("cursor, empty name", describe("three", "filled", cursor=at("", 0))),
    case("cursor before, with limit", describe("filled", "three", cursor=at("filled", 0), limit=2)),
    case("all, after a cursor", describe(cursor=at("filled", 0), limit=1)),
    case("internal", describe("__consumer_offsets", limit=2)),
]
CASES: list[Case] = [*CREATE, *ELECT, *REASSIGN, *LOG_DIRS, *CLUSTER, *TOPIC_PARTITIONS]
