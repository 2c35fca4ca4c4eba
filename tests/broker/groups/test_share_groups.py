"""Tests of share groups: members, fetches, acknowledgements, offsets and restarts, without a network (KIP-932)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hmb.broker.network.request_memory import RequestMemory
from hmb.broker.share.sessions import SessionId, ShareSessions
from hmb.broker.topics.topic import Topic
from hmb.protocol.enums import AcknowledgeType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from hmb.protocol.messages.delete_groups import DeleteGroupsRequest
from hmb.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from hmb.protocol.messages.delete_topics import DeleteTopicsRequest
from hmb.protocol.messages.describe_configs import DescribeConfigsRequest
from hmb.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from hmb.protocol.messages.join_group import JoinGroupRequest
from hmb.protocol.messages.list_groups import ListGroupsRequest
from hmb.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from hmb.protocol.messages.share_fetch import ShareFetchRequest
from hmb.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from hmb.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from hmb.records import ControlType, EndTransactionMarker, read_records
from tests.broker.conftest import Asker, as_bytes
from tests.storage.conftest import batch
from tests.waiting import until

MakeAsker = Callable[..., Asker]
ACCEPT, RELEASE, REJECT, RENEW = (
    AcknowledgeType.ACCEPT,
    AcknowledgeType.RELEASE,
    AcknowledgeType.REJECT,
    AcknowledgeType.RENEW,
)
GROUP, MEMBER = "s", "member"


@pytest.fixture
def ask(make_asker: MakeAsker) -> Iterator[Asker]:
    few = ("offsets_topic_num_partitions", "share_coordinator_state_topic_num_partitions")
    ask = make_asker(**dict.fromkeys(few, "2"), group_share_assignment_interval_ms="0")
    ask(FindCoordinatorRequest(key=GROUP), 0)
    ask.broker.topics.create("t", 1)
    configure(ask, "share.auto.offset.reset", "earliest")
    yield ask


def topic(ask: Asker) -> Topic:
    return ask.broker.topics.find("t", ask.broker.topics.get("t").id)  # type: ignore[union-attr]


def configure(ask: Asker, name: str, value: str) -> int:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    config = resource.AlterableConfig(name=name, value=value)
    request = IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=32, resource_name=GROUP, configs=[config])]
    )
    return int(ask(request, 1).responses[0].error_code)


def beat(ask: Asker, epoch: int, member: str = MEMBER, topics: list[str] | None = None) -> Any:
    request = ShareGroupHeartbeatRequest(
        group_id=GROUP, member_id=member, member_epoch=epoch, subscribed_topic_names=topics
    )
    return ask(request, 1)


def join(ask: Asker, member: str = MEMBER) -> Any:
    return beat(ask, 0, member, ["t"])


def write(ask: Asker, *sizes: int, **options: Any) -> None:
    for size in sizes:
        topic(ask).log(0).append(batch(size, **options))


class Member:
    """A member of the share group. The member has a share session with the broker."""

    def __init__(self, ask: Asker, name: str = MEMBER) -> None:
        self.ask, self.name, self.epoch = ask, name, 0

    def fetch(self, *acknowledged: tuple[int, int, list[int]], records: int = 500, **options: Any) -> Any:
        """Fetch, and return the data of the partition, or None if the response does not contain the partition."""
        kind = ShareFetchRequest.FetchTopic
        batches = [kind.FetchPartition.AcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=types)
                   for a, b, types in acknowledged]  # fmt: skip
        partitions = [kind.FetchPartition(acknowledgement_batches=batches)]
        fields = {"max_bytes": 1_000_000, "min_bytes": 1, "max_records": records, "batch_size": records, **options}
        response = self.ask(
            ShareFetchRequest(
                group_id=GROUP,
                member_id=self.name,
                share_session_epoch=self.epoch,
                topics=[kind(topic_id=topic(self.ask).id, partitions=partitions)],
                **fields,
            ),
            2,
        )
        assert response.error_code == 0, response.error_message
        self.epoch += 1
        return response.responses[0].partitions[0] if response.responses else None

    def acknowledge(self, first: int, last: int, *types: int, closes: bool = False, renews: bool = False) -> int:
        """Acknowledge records, and return the error code of the partition."""
        kind = ShareAcknowledgeRequest.AcknowledgeTopic
        acknowledged = kind.AcknowledgePartition.AcknowledgementBatch(
            first_offset=first, last_offset=last, acknowledge_types=list(types)
        )
        partition = kind.AcknowledgePartition(acknowledgement_batches=[acknowledged])
        response = self.ask(
            ShareAcknowledgeRequest(
                group_id=GROUP,
                member_id=self.name,
                share_session_epoch=-1 if closes else self.epoch,
                is_renew_ack=renews,
                topics=[kind(topic_id=topic(self.ask).id, partitions=[partition])],
            ),
            2,
        )
        self.epoch += 1
        return int(response.error_code or response.responses[0].partitions[0].error_code)


def acquired(data: Any) -> list[tuple[int, int, int]]:
    return [(it.first_offset, it.last_offset, it.delivery_count) for it in data.acquired_records] if data else []


def described_offset(ask: Asker) -> Any:
    group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=None)
    (described,) = ask(DescribeShareGroupOffsetsRequest(groups=[group]), 1).groups
    return described.topics[0].partitions[0] if described.topics else None


def test_two_members_share_one_partition(ask: Asker) -> None:
    assert len(join(ask).assignment.topic_partitions) == 1
    assert len(join(ask, "other").assignment.topic_partitions) == 1
    write(ask, 10, 10)
    first, second = Member(ask), Member(ask, "other")
    data = first.fetch(records=5)
    assert acquired(data) == [(0, 9, 1)]
    assert [record.offset for record in read_records(data.records)] == list(range(10))
    assert acquired(second.fetch()) == [(10, 19, 1)]
    assert first.acknowledge(0, 9, ACCEPT) == ErrorCode.NONE
    assert first.acknowledge(10, 10, ACCEPT) == ErrorCode.INVALID_RECORD_STATE
    assert described_offset(ask).start_offset == 10


def test_a_fetch_can_acknowledge_and_stops_at_a_strict_limit(ask: Asker) -> None:
    join(ask)
    write(ask, 10)
    member = Member(ask)
    assert acquired(member.fetch(records=4, share_acquire_mode=1)) == [(0, 3, 1)]
    data = member.fetch((0, 3, [ACCEPT, RELEASE, ACCEPT, REJECT]), records=500)
    assert data.acknowledge_error_code == ErrorCode.NONE
    assert acquired(data) == [(1, 1, 2), (4, 9, 1)]
    assert member.acknowledge(1, 1, RENEW, renews=True) == ErrorCode.NONE
    assert member.acknowledge(1, 1, RENEW) == ErrorCode.INVALID_REQUEST
    configure(ask, "share.renew.acknowledge.enable", "false")
    assert member.acknowledge(1, 1, RENEW, renews=True) == ErrorCode.INVALID_REQUEST


def test_a_fetch_that_waits_holds_no_memory_for_its_request(ask: Asker) -> None:
    join(ask)
    kind = ShareFetchRequest.FetchTopic
    request = ShareFetchRequest(
        group_id=GROUP,
        member_id=MEMBER,
        max_wait_ms=60_000,
        max_records=1,
        topics=[kind(topic_id=topic(ask).id, partitions=[kind.FetchPartition()])],
    )
    frame = b"".join(map(as_bytes, ask.client.request(request, 2)))[4:]
    memory = RequestMemory(1_000_000)
    account = memory.open(len(frame))
    account.take(len(frame))
    thread = threading.Thread(target=ask.dispatcher.begin, args=(memoryview(frame), account))
    thread.start()
    until(lambda: ask.broker.stop.watchers._watchers, "the fetch to wait")
    used = memory.used
    write(ask, 1)
    thread.join(30)
    assert not thread.is_alive()
    assert used == 0


def test_a_session_that_closes_releases_its_records(ask: Asker) -> None:
    join(ask)
    write(ask, 10)
    member, other = Member(ask), Member(ask, "other")
    member.fetch()
    assert member.acknowledge(0, 4, ACCEPT, closes=True) == ErrorCode.NONE
    assert acquired(other.fetch()) == [(5, 9, 2)]


def test_a_connection_that_ends_releases_the_records(ask: Asker) -> None:
    join(ask)
    write(ask, 10)
    Member(ask).fetch()
    client = ask.dispatcher._client
    for end in client.at_end.values():
        end()
    assert acquired(Member(ask, "other").fetch()) == [(0, 9, 2)]


def test_the_epochs_of_a_session_are_checked() -> None:
    sessions, id = ShareSessions(1), SessionId(GROUP, MEMBER)
    with pytest.raises(KafkaError) as raised:
        sessions.next(id, 1)
    assert raised.value.code is ErrorCode.SHARE_SESSION_NOT_FOUND
    session = sessions.open(id)
    assert sessions.next(id, 1) is session
    with pytest.raises(KafkaError) as raised:
        sessions.next(id, 1)
    assert raised.value.code is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    with pytest.raises(KafkaError) as raised:
        sessions.open(SessionId(GROUP, "other"))
    assert raised.value.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    newer = sessions.open(id)
    assert not sessions.end(session)
    assert sessions.end(newer)


def await_loaded(ask: Asker) -> None:
    ask.broker.groups.loaded.wait(10)
    until(lambda: ask.broker.share.coordinator._journal.is_complete)


def test_the_state_survives_a_restart(make_asker: MakeAsker, ask: Asker) -> None:
    epoch = join(ask).member_epoch
    write(ask, 10)
    member = Member(ask)
    member.fetch()
    member.acknowledge(0, 5, ACCEPT, RELEASE, ACCEPT, REJECT, RELEASE, ACCEPT)
    ask.close()
    again = make_asker()
    await_loaded(again)
    (group,) = again(ListGroupsRequest(types_filter=["share"]), 5).groups
    assert (group.group_id, group.group_state, group.protocol_type) == (GROUP, "Stable", "share")
    assert beat(again, epoch).error_code == ErrorCode.NONE
    assert acquired(Member(again, "other").fetch()) == [(1, 1, 2), (4, 4, 2), (6, 9, 1)]
    again.close()


def test_only_snapshots_are_left_after_pruning(
    make_asker: MakeAsker, ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hmb.coordinator.share.coordinator.UPDATES_BEFORE_PRUNING", 1)
    join(ask)
    write(ask, 10)
    member = Member(ask)
    member.fetch()
    member.acknowledge(0, 2, ACCEPT, RELEASE, ACCEPT)
    deleted: dict[int, int] = {}
    coordinator = ask.broker.share.coordinator
    coordinator.prune(deleted.update)
    ((number, offset),) = deleted.items()
    log = ask.broker.topics.find("__share_group_state", topic_id(ask, "__share_group_state")).log(number)
    # Offset 3 is the new snapshot. Offsets 0 to 2 are the old snapshot and two updates.
    assert (offset, log.log_end_offset) == (3, 4)
    before = list(ask.broker.share.start_offsets(GROUP).values())
    coordinator.prune(deleted.update)
    log.read(offset, 1000)
    ask.close()
    again = make_asker()
    await_loaded(again)
    after = list(again.broker.share.start_offsets(GROUP).values())
    assert [list(each.batches) for each in after] == [list(each.batches) for each in before]


def topic_id(ask: Asker, name: str) -> Any:
    found = ask.broker.topics.get(name)
    assert found is not None
    return found.id


def test_a_group_that_reads_committed_skips_aborted_transactions(ask: Asker) -> None:
    configure(ask, "share.isolation.level", "read_committed")
    join(ask)
    log = topic(ask).log(0)
    write(ask, 2, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    log.append_marker(EndTransactionMarker(ControlType.ABORT, 0), 7, 0)
    write(ask, 3)
    write(ask, 2, producer_id=8, producer_epoch=0, base_sequence=0, transactional=True)
    data = Member(ask).fetch()
    assert acquired(data) == [(3, 5, 1)]


def test_offsets_are_altered_and_deleted_only_without_members(ask: Asker) -> None:
    join(ask)
    write(ask, 10)
    member = Member(ask)
    member.fetch()
    member.acknowledge(0, 9, ACCEPT, closes=True)
    assert alter(ask, 3).error_code == ErrorCode.NON_EMPTY_GROUP
    assert delete(ask).error_code == ErrorCode.NON_EMPTY_GROUP
    beat(ask, -1)
    assert alter(ask, 3).responses[0].partitions[0].error_code == ErrorCode.NONE
    found = described_offset(ask)
    assert (found.start_offset, found.lag) == (3, 7)
    assert acquired(Member(ask, "other").fetch()) == [(3, 9, 1)]
    assert delete(ask).responses[0].error_code == ErrorCode.NONE
    assert described_offset(ask) is None
    (result,) = ask(DeleteGroupsRequest(groups_names=[GROUP]), 2).results
    assert result.error_code == ErrorCode.NONE
    assert ask(ListGroupsRequest(), 5).groups == []


def test_altered_offsets_create_a_group(ask: Asker) -> None:
    write(ask, 10)
    assert alter(ask, 3).responses[0].partitions[0].error_code == ErrorCode.NONE
    assert [(it.group_id, it.group_type, it.group_state) for it in ask(ListGroupsRequest(), 5).groups] == [
        (GROUP, "share", "Empty")
    ]
    join(ask)
    assert acquired(Member(ask).fetch()) == [(3, 9, 1)]


def alter(ask: Asker, offset: int) -> Any:
    kind = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
    partition = kind.AlterShareGroupOffsetsRequestPartition(start_offset=offset)
    return ask(AlterShareGroupOffsetsRequest(group_id=GROUP, topics=[kind(topic_name="t", partitions=[partition])]), 0)


def delete(ask: Asker) -> Any:
    kind = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic
    return ask(DeleteShareGroupOffsetsRequest(group_id=GROUP, topics=[kind(topic_name="t")]), 0)


def test_a_deleted_topic_leaves_the_group(ask: Asker) -> None:
    epoch = join(ask).member_epoch
    write(ask, 3)
    Member(ask).fetch()
    ask(DeleteTopicsRequest(topic_names=["t"]), 5)
    assert described_offset(ask) is None
    assert beat(ask, epoch).assignment.topic_partitions == []


@pytest.mark.parametrize("is_empty", [False, True])
@pytest.mark.parametrize("member", ["", "nobody"])
def test_a_classic_member_cannot_join(ask: Asker, member: str, is_empty: bool) -> None:
    join(ask)
    if is_empty:
        beat(ask, -1)
    protocols = [JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")]
    fields: dict[str, Any] = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocols": protocols}
    answer = ask(JoinGroupRequest(group_id=GROUP, member_id=member, protocol_type="consumer", **fields), 9)
    assert (answer.error_code, answer.member_id) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")


def test_epochs_and_names_of_members_are_checked(ask: Asker) -> None:
    assert beat(ask, 1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert beat(ask, 0, "", ["t"]).error_code == ErrorCode.INVALID_REQUEST
    assert beat(ask, 0, MEMBER).error_code == ErrorCode.INVALID_REQUEST
    epoch = join(ask).member_epoch
    assert beat(ask, epoch).assignment is None
    assert beat(ask, epoch + 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert beat(ask, epoch, "unknown").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    (described,) = ask(ShareGroupDescribeRequest(group_ids=[GROUP]), 1).groups
    assert (described.group_state, described.assignor_name) == ("Stable", "simple")
    assert [member.member_id for member in described.members] == [MEMBER]


def test_the_settings_of_a_share_group_are_checked_and_described(ask: Asker) -> None:
    assert configure(ask, "share.auto.offset.reset", "by_duration:PT1H") == ErrorCode.NONE
    assert configure(ask, "share.auto.offset.reset", "by_duration:1h") == ErrorCode.INVALID_CONFIG
    assert configure(ask, "share.delivery.count.limit", "11") == ErrorCode.INVALID_CONFIG
    resource = DescribeConfigsRequest.DescribeConfigsResource(resource_type=32, resource_name=GROUP)
    (found,) = ask(DescribeConfigsRequest(resources=[resource]), 4).results
    values = {config.name: config.value for config in found.configs if config.name.startswith("share.")}
    assert values == {
        "share.assignment.interval.ms": "0",
        "share.auto.offset.reset": "by_duration:PT1H",
        "share.delivery.count.limit": "5",
        "share.heartbeat.interval.ms": "5000",
        "share.isolation.level": "read_uncommitted",
        "share.partition.max.record.locks": "2000",
        "share.record.lock.duration.ms": "30000",
        "share.renew.acknowledge.enable": "true",
        "share.session.timeout.ms": "45000",
    }
