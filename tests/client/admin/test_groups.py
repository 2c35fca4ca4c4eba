"""Tests of `Admin` for groups: members, committed offsets and lag."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import hmb
from hmb.client import TopicPartition
from hmb.client.admin import Admin, NewTopic, PlannedOffset, ShiftBy, raised
from hmb.client.connection import Connection
from hmb.client.group.interface import OffsetAndMetadata
from hmb.client.offsets import AtTime
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from hmb.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from hmb.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from hmb.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from hmb.protocol.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from hmb.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse
from hmb.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from hmb.protocol.schema import Request, Response
from tests.client.scripted_broker import ScriptedBroker
from tests.waiting import until

ZERO, ONE, TWO = (TopicPartition("t", number) for number in range(3))


@pytest.fixture(scope="module")
def admin(servers: str) -> Iterator[Admin]:
    """Yield an `Admin` for a broker that has the topic t.

    Partition 0 has ten records with the timestamps 1000, 1001, ... ms, and partition 1 has five.
    """
    with hmb.Producer(servers) as producer:
        for partition, count in ((0, 10), (1, 5)):
            for number in range(count):
                producer.send("t", b"x", partition=partition, timestamp=1000 + number)
    with Admin(servers) as admin:
        yield admin


@contextmanager
def member(servers: str, group: str, **settings: str) -> Iterator[hmb.Consumer]:
    with hmb.Consumer(servers, "t", group=group, client_id="app", **settings) as consumer:  # type: ignore[arg-type]
        while not consumer.assignment:
            consumer.poll(0.1)
        yield consumer


def test_committed_offsets_are_set_read_and_deleted(admin: Admin) -> None:
    offsets: dict[TopicPartition, int | OffsetAndMetadata] = {ZERO: 7, ONE: OffsetAndMetadata(2, "by hand", 0)}
    assert admin.alter_group_offsets("g", offsets) == {ZERO: None, ONE: None}
    assert admin.list_group_offsets("g") == {ZERO: OffsetAndMetadata(7), ONE: OffsetAndMetadata(2, "by hand", 0)}
    assert admin.list_group_offsets("g", [ONE, TWO]).keys() == {ONE}
    assert admin.delete_group_offsets("g", [ZERO]) == {ZERO: None}
    assert admin.list_group_offsets("g").keys() == {ONE}
    assert admin.delete_groups(["g"]) == {"g": None}
    assert admin.list_group_offsets("g") == {}
    nowhere = admin.alter_group_offsets("g", {TopicPartition("nowhere", 0): 1})[TopicPartition("nowhere", 0)]
    assert nowhere is not None
    assert nowhere.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_with_their_members(admin: Admin, servers: str, protocol: str) -> None:
    group = f"with-{protocol}"
    with member(servers, group, group_protocol=protocol) as consumer:
        described = raised(admin.describe_groups([group])[group])
        assert (described.type, described.state, described.protocol_type) == (protocol, "Stable", "consumer")
        assert described.is_active
        (it,) = described.members
        assert it.assignment == it.target == (ZERO, ONE, TWO)
        assert (it.member_id, it.client_id) == (consumer.group_metadata.member_id, "app")
        listed = {it.group_id: it for it in admin.list_groups(types=[protocol.upper()], states=["STABLE"])}
        assert listed[group].type == protocol
        assert admin.list_groups(states=["Dead"]) == []
        refused = admin.alter_group_offsets(group, {ZERO: 1})[ZERO]
        assert refused is not None
        assert refused.code is ErrorCode.UNKNOWN_MEMBER_ID
        not_empty = admin.delete_groups([group])[group]
        assert not_empty is not None
        assert not_empty.code is ErrorCode.NON_EMPTY_GROUP
    assert not raised(admin.describe_groups([group])[group]).is_active


def test_a_group_that_does_not_exist(admin: Admin) -> None:
    for results in (admin.describe_groups(["none"]), admin.delete_groups(["none"])):
        error = results["none"]
        assert isinstance(error, KafkaError)
        assert (error.code, error.message) == (ErrorCode.GROUP_ID_NOT_FOUND, "there is no group 'none'")


def test_members_are_removed(admin: Admin, servers: str) -> None:
    with member(servers, "removed", group_instance_id="static"):
        results = admin.remove_members("removed", group_instance_ids=["static", "other"])
        assert results["static"] is None
        assert isinstance(results["other"], KafkaError)
        assert raised(admin.describe_groups(["removed"])["removed"]).members == ()


def test_the_lag_in_records_and_in_time(admin: Admin) -> None:
    admin.alter_group_offsets("late", {ZERO: 4, ONE: 5})
    lags = admin.describe_lag("late", [TWO])
    assert [(lag.lag, lag.unread_since) for lag in lags.values()] == [(6, 1004), (0, None), (None, None)]
    assert list(lags) == [ZERO, ONE, TWO]
    assert lags[ZERO].log_end_offset == 10
    assert admin.describe_lag("late", times=False)[ZERO].unread_since is None


def test_the_lag_in_time_of_many_partitions_requires_several_fetches(servers: str) -> None:
    with hmb.Producer(servers, linger_ms=50) as producer:
        for partition in range(3):
            producer.send("wide", bytes(100_000), partition=partition, timestamp=100 + partition)
    with Admin(servers) as admin:
        partitions = [TopicPartition("wide", number) for number in range(3)]
        admin.alter_group_offsets("wide", dict.fromkeys(partitions, 0))
        assert [lag.unread_since for lag in admin.describe_lag("wide").values()] == [100, 101, 102]


def test_the_lag_in_time_of_more_partitions_than_one_request_contains(servers: str) -> None:
    partitions = [TopicPartition("many", number) for number in range(120)]
    with Admin(servers) as admin, hmb.Producer(servers) as producer:
        admin.create_topics([NewTopic("many", 120)])
        for topic, number in partitions:
            producer.send(topic, b"x", partition=number, timestamp=number)
        producer.flush()
        admin.alter_group_offsets("many", dict.fromkeys(partitions, 0))
        assert [lag.unread_since for lag in admin.describe_lag("many").values()] == list(range(120))


@pytest.mark.parametrize(
    ("to", "planned"),
    [
        ("earliest", [PlannedOffset(4, 0, False), PlannedOffset(None, 0, False)]),
        ("latest", [PlannedOffset(4, 10, False), PlannedOffset(None, 5, False)]),
        ("current", [PlannedOffset(4, 4, False), PlannedOffset(None, 5, False)]),
        (7, [PlannedOffset(4, 7, False), PlannedOffset(None, 5, True)]),
        (AtTime(1003), [PlannedOffset(4, 3, False), PlannedOffset(None, 3, False)]),
        (AtTime(9999), [PlannedOffset(4, 10, False), PlannedOffset(None, 5, False)]),
    ],
)
def test_plans_of_a_reset(admin: Admin, to: object, planned: list[PlannedOffset]) -> None:
    admin.alter_group_offsets("planned", {ZERO: 4})
    assert list(admin.plan_reset("planned", [ZERO, ONE], to).values()) == planned  # type: ignore[arg-type]


def test_an_offset_that_was_never_committed_cannot_be_shifted(admin: Admin) -> None:
    admin.alter_group_offsets("shifted", {ZERO: 4})
    assert admin.plan_reset("shifted", [ZERO], ShiftBy(-9)) == {ZERO: PlannedOffset(4, 0, True)}
    with pytest.raises(KafkaError, match="group 'shifted' has committed no offset in t-1"):
        admin.plan_reset("shifted", [ONE], ShiftBy(1))


class Coordinators:
    """Two brokers. The coordinator of the group moves from the first broker to the second broker.

    Until the first broker receives an OffsetFetch request, both brokers name the first broker as the coordinator.
    After this request, they name the second broker.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.ports: list[int] = []

    def serve(self, name: str, error: ErrorCode) -> ScriptedBroker:
        def answer(request: Request, version: int) -> Response:
            if isinstance(request, FindCoordinatorRequest):
                port = self.ports[1] if "one" in self.asked else self.ports[0]
                found = FindCoordinatorResponse.Coordinator(key="g", node_id=1, host="127.0.0.1", port=port)
                return FindCoordinatorResponse(coordinators=[found])
            assert isinstance(request, OffsetFetchRequest)
            self.asked.append(name)
            group = OffsetFetchResponse.OffsetFetchResponseGroup(group_id="g", error_code=error)
            return OffsetFetchResponse(groups=[group])

        broker = ScriptedBroker(answer)
        self.ports.append(broker.port)
        return broker


def test_a_coordinator_that_has_moved_is_found() -> None:
    brokers = Coordinators()
    with (
        brokers.serve("one", ErrorCode.NOT_COORDINATOR) as one,
        brokers.serve("two", ErrorCode.NONE),
        Admin(one.address) as admin,
    ):
        assert admin.list_group_offsets("g") == {}
    assert brokers.asked == ["one", "two"]


def old_broker(request: Request, version: int) -> Response:
    """Return the response of a Kafka 0.10 broker to a request.

    Kafka 0.10 differs from newer versions: a LeaveGroup request removes only one member, the response for an unknown
    group contains the state Dead, and members have no group instance ids.
    """
    match request:
        case FindCoordinatorRequest():
            return FindCoordinatorResponse(host="127.0.0.1", port=old_broker.port)  # type: ignore[attr-defined]
        case LeaveGroupRequest(member_id="here"):
            return LeaveGroupResponse()
        case LeaveGroupRequest():
            return LeaveGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        case DescribeGroupsRequest():
            return DescribeGroupsResponse(
                groups=[DescribeGroupsResponse.DescribedGroup(group_id="g", group_state="Dead")]
            )
        case ListGroupsRequest():
            return ListGroupsResponse()
    raise AssertionError(request)


def test_an_old_broker() -> None:
    versions: dict[type[Request], int] = {
        ConsumerGroupDescribeRequest: -1,
        ShareGroupDescribeRequest: -1,
        StreamsGroupDescribeRequest: -1,
        FindCoordinatorRequest: 0,
        DescribeGroupsRequest: 0,
        LeaveGroupRequest: 0,
    }
    with ScriptedBroker(old_broker, versions) as broker, Admin(broker.address) as admin:
        old_broker.port = broker.port  # type: ignore[attr-defined]
        with pytest.raises(KafkaError, match="there is no group 'g'"):
            raised(admin.describe_groups(["g"])["g"])
        left = admin.remove_members("g", member_ids=["here", "gone"])
        assert left["here"] is None
        assert isinstance(left["gone"], KafkaError)
        with pytest.raises(KafkaError, match="has no group instance ids"):
            admin.remove_members("g", group_instance_ids=["i"])


def test_a_streams_group_is_described_with_the_partitions_of_its_tasks() -> None:
    at_once = ("group.streams.initial.rebalance.delay.ms", "group.streams.assignment.interval.ms")
    topology = StreamsGroupHeartbeatRequest.Topology
    part = topology.Subtopology(subtopology_id="0", source_topics=["lines"])
    joining = StreamsGroupHeartbeatRequest(
        group_id="words",
        member_id="thread",
        rebalance_timeout_ms=1000,
        topology=topology(subtopologies=[part]),
        **{f"{role}_tasks": [] for role in ("active", "standby", "warmup")},  # type: ignore[arg-type]
    )
    with hmb.Broker(config=dict.fromkeys(at_once, "0")) as broker, Admin(broker.bootstrap_servers) as admin:
        broker.create_topic("lines", partitions=2)
        host, _, port = broker.bootstrap_servers.partition(":")
        connection = Connection(host, int(port))
        connection.send(FindCoordinatorRequest(coordinator_keys=["words"]))
        until(lambda: not connection.send(joining).error_code)
        found = raised(admin.describe_groups(["words"])["words"])
        assert (found.type, found.state, found.protocol_type) == ("streams", "Stable", "streams")
        (thread,) = found.members
        assert thread.assignment == thread.target == (TopicPartition("lines", 0), TopicPartition("lines", 1))
        (info,) = broker.state().groups
        (shown,) = info.members
        assert (info.type, shown.partitions) == ("streams", ["lines-0", "lines-1"])
        connection.send(StreamsGroupHeartbeatRequest(group_id="words", member_id="thread", member_epoch=-1))
        assert admin.delete_groups(["words"]) == {"words": None}
        connection.close()


def test_a_group_of_another_type_is_listed_but_not_described() -> None:
    def answer(request: Request, version: int) -> Response:
        match request:
            case FindCoordinatorRequest():
                found = FindCoordinatorResponse.Coordinator(key="new", node_id=7, host="127.0.0.1", port=broker.port)
                return FindCoordinatorResponse(coordinators=[found])
            case ConsumerGroupDescribeRequest():
                unknown = ConsumerGroupDescribeResponse.DescribedGroup(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
                return ConsumerGroupDescribeResponse(groups=[unknown])
            case ShareGroupDescribeRequest():
                missing = ShareGroupDescribeResponse.DescribedGroup(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
                return ShareGroupDescribeResponse(groups=[missing])
            case StreamsGroupDescribeRequest():
                absent = StreamsGroupDescribeResponse.DescribedGroup(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
                return StreamsGroupDescribeResponse(groups=[absent])
            case DescribeGroupsRequest():
                dead = DescribeGroupsResponse.DescribedGroup(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
                return DescribeGroupsResponse(groups=[dead])
        new = ListGroupsResponse.ListedGroup(group_id="new", protocol_type="future", group_state="Stable")
        new.group_type = "future"
        return ListGroupsResponse(groups=[new])

    with ScriptedBroker(answer) as broker, Admin(broker.address) as admin:
        assert [it.type for it in admin.list_groups()] == ["future"]
        with pytest.raises(KafkaError, match="group 'new' is a future group, which this client only lists"):
            raised(admin.describe_groups(["new"])["new"])
        with pytest.raises(KafkaError, match="there is no group 'other'"):
            raised(admin.describe_groups(["other"])["other"])
