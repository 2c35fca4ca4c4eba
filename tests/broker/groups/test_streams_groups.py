"""Tests of streams groups in the broker (KIP-1071). The tests call the broker directly, without a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hmb.protocol.enums import StreamsStatus
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from hmb.protocol.messages.delete_groups import DeleteGroupsRequest
from hmb.protocol.messages.describe_configs import DescribeConfigsRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from hmb.protocol.messages.join_group import JoinGroupRequest
from hmb.protocol.messages.list_groups import ListGroupsRequest
from hmb.protocol.messages.offset_commit import OffsetCommitRequest
from hmb.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from hmb.protocol.messages.streams_group_heartbeat import KeyValue, StreamsGroupHeartbeatRequest
from tests.broker.conftest import Asker
from tests.coordinator.streams.driver import CHANGELOG, REPARTITION, Topology, names, tasks, word_count
from tests.waiting import until

MakeAsker = Callable[..., Asker]
GROUP, MEMBER = "words", "member"


@pytest.fixture
def opened(make_asker: MakeAsker) -> Callable[[], Asker]:
    """Return a function that starts the broker. Each further call restarts the broker."""
    few = {"offsets_topic_num_partitions": "2"}
    now = dict.fromkeys(
        ("group_streams_assignment_interval_ms", "group_streams_initial_rebalance_delay_ms"), "0"
    )

    def start() -> Asker:
        ask = make_asker(**few, **now)
        ask(FindCoordinatorRequest(key=GROUP), 0)
        until(ask.broker.groups.loaded.is_set)
        return ask

    return start


@pytest.fixture
def ask(opened: Callable[[], Asker]) -> Asker:
    ask = opened()
    ask.broker.topics.create("lines", 2)
    return ask


def beat(ask: Asker, epoch: int, **fields: Any) -> Any:
    fields = {"group_id": GROUP, "member_id": MEMBER, **fields}
    return ask(StreamsGroupHeartbeatRequest(member_epoch=epoch, **fields), 0)


def join(ask: Asker, topology: Topology | None = None, **fields: Any) -> Any:
    owned: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    return beat(ask, 0, rebalance_timeout_ms=1000, topology=topology or word_count(), **owned, **fields)


def describe(ask: Asker, group: str = GROUP) -> Any:
    (found,) = ask(StreamsGroupDescribeRequest(group_ids=[group], include_authorized_operations=True), 0).groups
    return found


def listed(ask: Asker) -> list[tuple[str, str, str]]:
    return [(it.group_id, it.group_type, it.group_state) for it in ask(ListGroupsRequest(), 5).groups]


def test_the_broker_creates_the_internal_topics(ask: Asker) -> None:
    topology = word_count()
    (changelog,) = topology.subtopologies[1].state_changelog_topics
    changelog.topic_configs = [KeyValue(key="cleanup.policy", value="compact")]
    answer = join(ask, topology)
    assert [status.status_code for status in answer.status] == [StreamsStatus.MISSING_INTERNAL_TOPICS]
    assert listed(ask) == [(GROUP, "streams", "NotReady")]
    topics = {name: ask.broker.topics.get(name) for name in (CHANGELOG, REPARTITION)}
    assert all(topic is not None and len(topic.partitions) == 2 for topic in topics.values())
    assert topics[CHANGELOG].configs == {"cleanup.policy": "compact"}  # type: ignore[union-attr]
    answer = beat(ask, answer.member_epoch)
    assert (names(answer.active_tasks), answer.status) == (["0_0", "0_1", "1_0", "1_1"], [])
    assert listed(ask) == [(GROUP, "streams", "Stable")]


def test_a_status_names_the_topics_that_cannot_be_created(ask: Asker) -> None:
    topology = word_count()
    (changelog,) = topology.subtopologies[1].state_changelog_topics
    changelog.topic_configs = [KeyValue(key="cleanup.policy", value="tidy")]
    (status,) = join(ask, topology).status
    assert status.status_code == StreamsStatus.MISSING_INTERNAL_TOPICS
    assert f"; Creation failed: {CHANGELOG} (" in status.status_detail


def test_a_group_survives_a_restart(ask: Asker, opened: Callable[[], Asker]) -> None:
    join(ask)
    epoch = beat(ask, 2).member_epoch
    before = describe(ask)
    ask.close()
    again = opened()
    after = describe(again)
    assert (after.group_state, after.members) == ("Stable", before.members)
    assert beat(again, epoch).error_code == ErrorCode.NONE
    assert describe(again) == before


def test_a_group_is_described_and_deleted(ask: Asker) -> None:
    assert describe(ask).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert describe(ask, "").error_code == ErrorCode.INVALID_GROUP_ID
    join(ask)
    found = describe(ask)
    assert (found.error_code, found.group_state, found.authorized_operations > 0) == (0, "NotReady", True)
    deletion = DeleteGroupsRequest(groups_names=[GROUP])
    assert ask(deletion, 2).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    beat(ask, -1)
    assert ask(deletion, 2).results[0].error_code == ErrorCode.NONE
    assert listed(ask) == []


def test_a_member_that_may_not_join_leaves_no_group(ask: Asker) -> None:
    loop = word_count()
    loop.subtopologies[0].repartition_sink_topics = []
    assert join(ask, loop).error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert [kind for _, kind, _ in listed(ask)] == ["classic"]
    assert describe(ask).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    answer = beat(ask, 1)
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def commit(ask: Asker, epoch: int, topic: str = "lines") -> int:
    kind = OffsetCommitRequest.OffsetCommitRequestTopic
    partition = kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    request = OffsetCommitRequest(
        group_id=GROUP,
        member_id="" if epoch < 0 else MEMBER,
        generation_id_or_member_epoch=epoch,
        topics=[kind(name=topic, partitions=[partition])],
    )
    return int(ask(request, 9).topics[0].partitions[0].error_code)


def test_members_commit_offsets_with_their_epoch(ask: Asker) -> None:
    assert commit(ask, -1) == ErrorCode.NONE
    join(ask)
    epoch = beat(ask, 2).member_epoch
    assert commit(ask, epoch) == ErrorCode.NONE, "the group has kept its offsets"
    assert commit(ask, epoch + 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(ask, -1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_with_another_protocol_is_refused(ask: Asker) -> None:
    other = ConsumerGroupHeartbeatRequest(
        group_id="readers",
        member_id=MEMBER,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["lines"],
        topic_partitions=[],
    )
    assert ask(other, 1).error_code == ErrorCode.NONE
    assert join(ask, group_id="readers").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    join(ask)
    other.group_id = GROUP
    assert ask(other, 1).error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("member", ["", "nobody"])
def test_a_classic_member_cannot_join_a_group_with_members(ask: Asker, member: str) -> None:
    join(ask)
    protocols = [JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")]
    fields: dict[str, Any] = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocols": protocols}
    answer = ask(JoinGroupRequest(group_id=GROUP, member_id=member, protocol_type="consumer", **fields), 9)
    assert (answer.error_code, answer.member_id) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")


def configure(ask: Asker, name: str, value: str) -> int:
    kind = IncrementalAlterConfigsRequest.AlterConfigsResource
    configs = [kind.AlterableConfig(name=name, value=value)]
    resource = kind(resource_type=32, resource_name=GROUP, configs=configs)
    return int(ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0].error_code)


def test_a_group_has_settings_of_its_own(ask: Asker) -> None:
    assert configure(ask, "streams.heartbeat.interval.ms", "6000") == ErrorCode.NONE
    assert configure(ask, "streams.num.standby.replicas", "3") == ErrorCode.INVALID_CONFIG
    assert configure(ask, "streams.num.standby.replicas", "2") == ErrorCode.NONE
    assert configure(ask, "streams.initial.rebalance.delay.ms", "0") == ErrorCode.NONE
    assert join(ask).heartbeat_interval_ms == 6000
    described = DescribeConfigsRequest.DescribeConfigsResource(resource_type=32, resource_name=GROUP)
    (result,) = ask(DescribeConfigsRequest(resources=[described]), 4).results
    assert {it.name: it.value for it in result.configs}["streams.num.standby.replicas"] == "2"


def test_a_previous_epoch_with_owned_tasks_is_accepted(ask: Asker) -> None:
    join(ask)
    epoch = beat(ask, 2).member_epoch
    owned: dict[str, Any] = {"active_tasks": tasks("0_0"), "standby_tasks": [], "warmup_tasks": []}
    assert beat(ask, epoch - 1, **owned).member_epoch == epoch
    assert beat(ask, epoch - 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_api_versions_reports_the_feature(ask: Asker) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    features = {it.name: it.max_version_level for it in ask(request, 4).finalized_features}
    assert features["streams.version"] == 1
