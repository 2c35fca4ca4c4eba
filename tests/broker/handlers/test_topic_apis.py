"""Tests of APIs for topics and for the cluster, for example CreatePartitions and DescribeCluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from hmb.protocol.messages.create_partitions import CreatePartitionsRequest
from hmb.protocol.messages.describe_cluster import DescribeClusterRequest
from hmb.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from hmb.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from hmb.protocol.messages.elect_leaders import ElectLeadersRequest
from hmb.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from hmb.protocol.messages.metadata import MetadataRequest
from tests.broker.conftest import LISTENER, Asker
from tests.storage.conftest import batch

MAX_TOPIC_PARTITIONS = 10_000
Wanted = CreatePartitionsRequest.CreatePartitionsTopic
Measured = DescribeLogDirsRequest.DescribableLogDirTopic
Led = ElectLeadersRequest.TopicPartitions
Moved = AlterPartitionReassignmentsRequest.ReassignableTopic
Pages = DescribeTopicPartitionsRequest


@pytest.fixture
def asked(ask: Asker) -> Asker:
    ask.broker.topics.create("t", 2)
    return ask


# -- CreatePartitions


def enlarge(
    ask: Asker,
    count: int,
    assignments: Sequence[list[int]] | None = None,
    topic: str = "t",
    validate_only: bool = False,
) -> int:
    wanted = Wanted(name=topic, count=count, assignments=None)
    if assignments is not None:
        wanted.assignments = [Wanted.CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments]
    request = CreatePartitionsRequest(topics=[wanted], validate_only=validate_only)
    return int(ask(request, 3).results[0].error_code)


def partitions_in_metadata(ask: Asker) -> list[int]:
    (topic,) = ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")]), 9).topics
    return [partition.partition_index for partition in topic.partitions]


def test_new_partitions_are_in_metadata_at_once_and_after_the_next_start(make_asker: Callable[..., Asker]) -> None:
    ask = make_asker()
    log = ask.broker.topics.create("t", 2, {"max.message.bytes": "5000"}).partitions[1]
    log.append(batch(3))
    assert enlarge(ask, 4) == 0
    assert partitions_in_metadata(ask) == [0, 1, 2, 3]
    new = ask.broker.topics.all()[0].partitions
    assert new[1] is log and new[3].config.max_message_bytes == 5000
    ask.close()
    again = make_asker()
    assert partitions_in_metadata(again) == [0, 1, 2, 3]
    assert [again.broker.topics.all()[0].partitions[n].log_end_offset for n in range(4)] == [0, 3, 0, 0]


def test_new_partitions_have_the_topic_s_id(asked: Asker) -> None:
    id = asked.broker.topics.all()[0].id
    enlarge(asked, 3)
    assert asked.logs.topic_ids() == {"t": id}


@pytest.mark.parametrize(
    ("count", "assignments", "code"),
    [
        (2, None, ErrorCode.INVALID_PARTITIONS),
        (1, None, ErrorCode.INVALID_PARTITIONS),
        (-1, None, ErrorCode.INVALID_PARTITIONS),
        (MAX_TOPIC_PARTITIONS + 1, None, ErrorCode.POLICY_VIOLATION),
        (4, [[0]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[0], [0]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[0, 0]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (2, [[0]], ErrorCode.INVALID_PARTITIONS),
        (4, [[0], [0]], ErrorCode.NONE),
    ],
)
def test_create_partitions_checks_the_count_and_the_assignment(
    asked: Asker, count: int, assignments: list[list[int]] | None, code: ErrorCode
) -> None:
    assert enlarge(asked, count, assignments, validate_only=True) == code
    assert partitions_in_metadata(asked) == [0, 1]
    assert enlarge(asked, count, assignments) == code
    assert len(partitions_in_metadata(asked)) == (2 if code else count)


def test_partitions_of_topics_that_do_not_exist_or_are_named_twice(asked: Asker) -> None:
    assert enlarge(asked, 3, topic="nobody") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    twice = [Wanted(name="t", count=3, assignments=None), Wanted(name="t", count=4, assignments=None)]
    (answer,) = asked(CreatePartitionsRequest(topics=twice), 3).results
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert partitions_in_metadata(asked) == [0, 1]


def test_partitions_that_cannot_be_created_leave_no_files(
    make_asker: Callable[..., Asker], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = make_asker()
    ask.broker.topics.create("t", 2)

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("hmb.storage.log_manager.sync_all", full_disk)
        assert enlarge(ask, 5) == ErrorCode.KAFKA_STORAGE_ERROR
    assert partitions_in_metadata(ask) == [0, 1]
    ask.close()
    assert partitions_in_metadata(make_asker()) == [0, 1]


# -- DescribeTopicPartitions


def page(
    ask: Asker, *topics: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> list[tuple[str, int, int]]:
    """Describe topics; return `[(topic, error code, number of partitions)]` from the response."""
    answer = described(ask, *topics, limit=limit, cursor=cursor)
    return [(t.name or "", t.error_code, len(t.partitions)) for t in answer.topics]


def described(
    ask: Asker, *topics: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    request = Pages(topics=[Pages.TopicRequest(name=name) for name in topics], response_partition_limit=limit)
    if cursor is not None:
        request.cursor = Pages.Cursor(topic_name=cursor[0], partition_index=cursor[1])
    return ask(request, 0)  # type: ignore[no-any-return]


def read_all(ask: Asker, *topics: str, limit: int) -> list[tuple[str, int]]:
    """Request topics page by page, as a client does. Return all partitions, in the order of the responses."""
    found: list[tuple[str, int]] = []
    cursor: tuple[str, int] | None = None
    while True:
        answer = described(ask, *topics, limit=limit, cursor=cursor)
        assert sum(len(topic.partitions) for topic in answer.topics) <= limit
        found += [(topic.name or "", p.partition_index) for topic in answer.topics for p in topic.partitions]
        if answer.next_cursor is None:
            return found
        cursor = answer.next_cursor.topic_name, answer.next_cursor.partition_index


@pytest.fixture
def three(ask: Asker) -> Asker:
    for name, count in (("b", 3), ("a", 2), ("c", 1)):
        ask.broker.topics.create(name, count)
    return ask


@pytest.mark.parametrize("limit", range(1, 8))
def test_pages_of_any_size_hold_each_partition_once_in_order(three: Asker, limit: int) -> None:
    assert read_all(three, limit=limit) == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]
    assert read_all(three, "c", "a", "c", limit=limit) == [("a", 0), ("a", 1), ("c", 0)]


def test_a_full_page_contains_the_cursor_of_the_next_one(three: Asker) -> None:
    def cursor(*topics: str, limit: int) -> tuple[str, int] | None:
        found = described(three, *topics, limit=limit).next_cursor
        return found and (found.topic_name, found.partition_index)

    assert cursor(limit=1) == ("a", 1)
    assert cursor(limit=2) == ("b", 0)
    assert cursor("a", limit=2) is None
    assert cursor("a", "nobody", limit=2) == ("nobody", 0)
    assert cursor(limit=0) == ("a", 1)  # A page contains at least one partition.


def test_the_broker_s_own_limit(make_asker: Callable[..., Asker]) -> None:
    ask = make_asker(max_request_partition_size_limit="3")
    ask.broker.topics.create("t", 5)
    assert page(ask, limit=100) == [("t", 0, 3)]


def test_a_page_starts_at_the_cursor(three: Asker) -> None:
    assert page(three, cursor=("b", 2)) == [("b", 0, 1), ("c", 0, 1)]
    assert page(three, cursor=("b", 99)) == [("b", 0, 0), ("c", 0, 1)]
    assert page(three, cursor=("az", 0)) == [("b", 0, 3), ("c", 0, 1)]  # The cursor names the deleted topic az.
    for wrong in (("az", 0), ("b", -1)):
        assert page(three, "b", "c", cursor=wrong) == [("b", 42, 0), ("c", 42, 0)]


def test_topics_that_do_not_exist_are_listed_with_the_others(three: Asker) -> None:
    assert page(three, "nobody", "a", "a b") == [("a", 0, 2), ("a b", 17, 0), ("nobody", 3, 0)]


def test_the_fields_of_a_partition(three: Asker) -> None:
    (topic,) = described(three, "c").topics
    (partition,) = topic.partitions
    assert topic.topic_id == three.broker.topics.find("c", topic.topic_id).id
    assert (partition.leader_id, partition.leader_epoch) == (0, 0)
    assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([0], [0], [])


# -- DescribeLogDirs


def test_sizes_on_disk(asked: Asker) -> None:
    data = batch(3)
    asked.broker.topics.all()[0].partitions[1].append(data)
    (directory,) = asked(DescribeLogDirsRequest(topics=None), 5).results
    (topic,) = directory.topics
    assert directory.log_dir == str(asked.logs.directory.resolve())
    assert {p.partition_index: p.partition_size for p in topic.partitions} == {0: 0, 1: data.size}
    assert 0 < directory.usable_bytes < directory.total_bytes
    assert not directory.is_cordoned


def test_only_requested_partitions_that_exist(asked: Asker) -> None:
    wanted = [Measured(topic="t", partitions=[1, 7]), Measured(topic="nobody", partitions=[0])]
    (directory,) = asked(DescribeLogDirsRequest(topics=wanted), 5).results
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in directory.topics] == [("t", [1])]
    assert asked(DescribeLogDirsRequest(topics=[]), 5).results[0].topics == []


# -- DescribeCluster


def test_the_cluster_is_this_broker_at_the_address_the_client_knows(ask: Asker) -> None:
    answer = ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 2)
    assert [(b.broker_id, b.host, b.port, b.is_fenced) for b in answer.brokers] == [
        (0, LISTENER.advertised_host, LISTENER.advertised_port, False)
    ]
    assert (answer.controller_id, answer.cluster_id) == (0, ask.broker.cluster_id)
    assert answer.cluster_authorized_operations > 0


def test_a_broker_is_not_an_endpoint_of_a_controller(ask: Asker) -> None:
    for kind, code in ((2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)):
        answer = ask(DescribeClusterRequest(endpoint_type=kind), 1)
        assert (answer.error_code, answer.brokers) == (code, [])


# -- ElectLeaders


def elect(ask: Asker, kind: int, *partitions: tuple[str, int]) -> list[ErrorCode]:
    request = ElectLeadersRequest(election_type=kind)
    request.topic_partitions = [Led(topic=topic, partitions=[number]) for topic, number in partitions]
    results = ask(request, 2).replica_election_results
    return [ErrorCode(partition.error_code) for topic in results for partition in topic.partition_result]


@pytest.mark.parametrize("kind", [0, 1])
def test_the_only_broker_leads_already(asked: Asker, kind: int) -> None:
    assert elect(asked, kind, ("t", 0), ("t", 2), ("nobody", 0)) == [
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_an_election_for_all_partitions_names_no_partition_with_its_leader(asked: Asker) -> None:
    answer = asked(ElectLeadersRequest(topic_partitions=None), 2)
    assert [(topic.topic, topic.partition_result) for topic in answer.replica_election_results] == [("t", [])]


def test_there_are_two_kinds_of_election(asked: Asker) -> None:
    answer = asked(ElectLeadersRequest(election_type=2, topic_partitions=[]), 2)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert elect(asked, 2, ("t", 0)) == [ErrorCode.INVALID_REQUEST]


# -- reassignments


@pytest.mark.parametrize(
    ("topic", "number", "replicas", "code"),
    [
        ("t", 1, [0], ErrorCode.NONE),
        ("t", 1, [1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 1, [0, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 1, [0, 0], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 1, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 1, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ("t", 2, [0], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("nobody", 0, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_partition_can_be_assigned_to_its_own_broker(
    asked: Asker, topic: str, number: int, replicas: list[int] | None, code: ErrorCode
) -> None:
    wanted = Moved(name=topic, partitions=[Moved.ReassignablePartition(partition_index=number, replicas=replicas)])
    answer = asked(AlterPartitionReassignmentsRequest(topics=[wanted]), 1)
    assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, code)


def test_nothing_is_being_moved(asked: Asker) -> None:
    assert asked(ListPartitionReassignmentsRequest(topics=None), 0).topics == []
