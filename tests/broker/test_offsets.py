"""OffsetCommit, OffsetFetch, OffsetDelete, bytes to bytes: every version, every error, and what a restart leaves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest

from hmb.broker.topics import NO_ID
from hmb.coordinator.group_records import OffsetCommitKey, decode_key
from hmb.coordinator.journal import GroupJournal
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.create_partitions import CreatePartitionsRequest
from hmb.protocol.messages.delete_topics import DeleteTopicsRequest
from hmb.protocol.messages.describe_groups import DescribeGroupsRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.join_group import JoinGroupRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.messages.offset_commit import OffsetCommitRequest
from hmb.protocol.messages.offset_delete import OffsetDeleteRequest
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.broker.conftest import Asker
from tests.storage.conftest import read_all

Topic = OffsetCommitRequest.OffsetCommitRequestTopic
Partition = Topic.OffsetCommitRequestPartition
FetchedGroup = OffsetFetchRequest.OffsetFetchRequestGroup
DeletedTopic = OffsetDeleteRequest.OffsetDeleteRequestTopic
Found = dict[int, tuple[int, int, str, int]]  # partition -> offset, leader epoch, metadata, error
NOBODY = UUID(int=9)
NEWEST = OffsetCommitRequest.versions[-1]
BEFORE_IDS = 9


@pytest.fixture
def ask(make_asker: Callable[..., Asker]) -> Asker:
    """With a topic and a coordinator."""
    asker = make_asker()
    asker.broker.topics.create("t", 3)
    asker.broker.groups.make_topic()
    return asker


def topic_id(ask: Asker, name: str) -> UUID:
    topic = ask.broker.topics.get(name)
    return NOBODY if topic is None else topic.id


def named(ask: Asker, name: str, version: int) -> dict[str, Any]:
    return {"topic_id": topic_id(ask, name)} if version >= 10 else {"name": name}


def commit(
    ask: Asker, partitions: dict[int, int], version: int = NEWEST, *, group: str = "g", topic: str = "t", **fields: Any
) -> list[tuple[int, int]]:
    """Partition -> offset; the answer's partitions with their errors."""
    of_partition = {name: fields.pop(name) for name in list(fields) if name in Partition.fields}
    of_partition.setdefault("committed_metadata", "")
    wanted = [Partition(partition_index=i, committed_offset=at, **of_partition) for i, at in partitions.items()]
    fields.setdefault("generation_id_or_member_epoch", -1)
    request = OffsetCommitRequest(
        group_id=group, topics=[Topic(**named(ask, topic, version), partitions=wanted)], **fields
    )
    return [(p.partition_index, p.error_code) for t in ask(request, version).topics for p in t.partitions]


def fetch_group(ask: Asker, indexes: Sequence[int] | None, version: int, group: str, topic: str) -> Any:
    """The answer for the group, in whichever shape the version has."""
    if version < 8:
        topics = [OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=list(indexes or ()))]
        return ask(OffsetFetchRequest(group_id=group, topics=None if indexes is None else topics), version)
    wanted = [
        FetchedGroup.OffsetFetchRequestTopics(**named(ask, topic, version), partition_indexes=list(indexes or ()))
    ]
    request = OffsetFetchRequest(groups=[FetchedGroup(group_id=group, topics=None if indexes is None else wanted)])
    return ask(request, version).groups[0]


def fetch(
    ask: Asker, indexes: Sequence[int] | None = (0,), version: int = 9, *, group: str = "g", topic: str = "t"
) -> Found:
    answer = fetch_group(ask, indexes, version, group, topic)
    assert answer.error_code == 0
    return {
        p.partition_index: (p.committed_offset, p.committed_leader_epoch, p.metadata, p.error_code)
        for t in answer.topics
        for p in t.partitions
    }


def offsets(ask: Asker, **fields: Any) -> dict[int, int]:
    return {index: found[0] for index, found in fetch(ask, None, **fields).items()}


@pytest.mark.parametrize("version", OffsetCommitRequest.versions)
def test_commit_in_every_version(ask: Asker, version: int) -> None:
    assert commit(ask, {0: 5, 2: 7}, version, committed_metadata="m", committed_leader_epoch=4) == [(0, 0), (2, 0)]
    epoch = 4 if version >= 6 else -1
    assert fetch(ask, None) == {0: (5, epoch, "m", 0), 2: (7, epoch, "m", 0)}


@pytest.mark.parametrize("version", OffsetFetchRequest.versions)
def test_fetch_in_every_version(ask: Asker, version: int) -> None:
    commit(ask, {0: 5}, committed_metadata="m", committed_leader_epoch=4)
    nothing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if version == 0 else 0
    committed = (5, 4 if version >= 5 else -1, "m", 0)
    assert fetch(ask, [0, 1, 77], version) == {0: committed, 1: (-1, -1, "", nothing), 77: (-1, -1, "", nothing)}
    if version >= 2:
        assert fetch(ask, None, version) == {0: committed}


def test_commit_metadata_comes_back_as_sent_and_leader_epoch_minus_1_too(ask: Asker) -> None:
    """Behaviour 11."""
    for text in ("", "ü€😀", '{"json": "\\n"}\n\0', " "):
        assert commit(ask, {0: 5}, committed_metadata=text, committed_leader_epoch=-1) == [(0, 0)]
        assert fetch(ask) == {0: (5, -1, text, 0)}
    commit(ask, {0: 6}, committed_metadata=None)
    assert fetch(ask) == {0: (6, -1, "", 0)}


def test_nothing_is_advertised_that_does_not_work_in_full(ask: Asker) -> None:
    """Behaviour 3: topic ids in OffsetFetch v10 need a Metadata that tells them."""
    versions = {
        each.api_key: each
        for each in ask(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3).api_keys
    }
    commit_key, fetch_key, metadata_key = (
        r.api_key for r in (OffsetCommitRequest, OffsetFetchRequest, MetadataRequest)
    )
    assert (versions[commit_key].min_version, versions[commit_key].max_version) == (0, 10)
    assert (versions[fetch_key].min_version, versions[fetch_key].max_version) == (0, 10)
    assert versions[metadata_key].max_version >= 10


def test_any_number_is_an_offset(ask: Asker) -> None:
    commit(ask, {0: -1, 1: -5, 2: 2**63 - 1})
    assert offsets(ask) == {0: -1, 1: -5, 2: 2**63 - 1}


def test_metadata_that_is_too_large_stops_no_other_partition(ask: Asker) -> None:
    """Its length is counted as Kafka counts it, in UTF-16 units."""
    assert commit(ask, {0: 1}, committed_metadata="ü" * 4096) == [(0, 0)]
    for text in ("x" * 4097, "😀" * 2048 + "x"):
        assert commit(ask, {1: 1}, committed_metadata=text) == [(1, ErrorCode.OFFSET_METADATA_TOO_LARGE)]
    partitions = [Partition(partition_index=i, committed_metadata="x" * (4096 + i)) for i in range(2)]
    request = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=-1, topics=[Topic(name="t", partitions=partitions)]
    )
    (answer,) = ask(request, BEFORE_IDS).topics
    assert [p.error_code for p in answer.partitions] == [0, ErrorCode.OFFSET_METADATA_TOO_LARGE]


def test_what_does_not_exist_is_refused_before_the_group_is_asked(ask: Asker) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(ask, {0: 1}, BEFORE_IDS, topic="nosuch") == [(0, unknown)]
    assert commit(ask, {0: 1}, NEWEST, topic="nosuch") == [(0, ErrorCode.UNKNOWN_TOPIC_ID)]
    assert commit(ask, {0: 1, 9: 1, -1: 1}) == [(9, unknown), (-1, unknown), (0, 0)]
    assert commit(ask, {9: 1}, generation_id_or_member_epoch=3) == [(9, unknown)]
    assert offsets(ask) == {0: 1}
    assert fetch(ask, [0], NEWEST, topic="nosuch") == {0: (-1, -1, "", ErrorCode.UNKNOWN_TOPIC_ID)}
    assert fetch(ask, [0], BEFORE_IDS, topic="nosuch") == {0: (-1, -1, "", 0)}


def test_topics_named_twice(ask: Asker) -> None:
    def of(*topics: tuple[str, int]) -> list[tuple[str, list[int]]]:
        wanted = [
            Topic(name=name, partitions=[Partition(partition_index=i, committed_metadata="")]) for name, i in topics
        ]
        answer = ask(OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=wanted), BEFORE_IDS)
        return [(topic.name, [p.partition_index for p in topic.partitions]) for topic in answer.topics]

    assert of(("t", 0), ("t", 1)) == [("t", [0]), ("t", [1])]
    assert of(("t", 0), ("nosuch", 0), ("t", 7), ("t", 1)) == [("nosuch", [0]), ("t", [7, 0, 1])]
    assert of() == []


@pytest.mark.parametrize(("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_generation_of_an_unknown_group(ask: Asker, version: int, code: ErrorCode) -> None:
    assert commit(ask, {0: 1}, version, generation_id_or_member_epoch=3, member_id="m") == [(0, code)]


def test_who_is_in_no_group_may_commit_to_one_that_is_empty(ask: Asker) -> None:
    assert commit(ask, {0: 1}, member_id="m", group_instance_id="i") == [(0, 0)]
    assert commit(ask, {0: 2}, generation_id_or_member_epoch=0) == [(0, ErrorCode.UNKNOWN_MEMBER_ID)]
    assert commit(ask, {0: 3}, group="") == [(0, 0)]
    assert (offsets(ask), offsets(ask, group="")) == ({0: 1}, {0: 3})


def join(ask: Asker) -> tuple[str, int]:
    """A consumer of the group, in its first generation, which has no assignment yet."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(
        name="range", metadata=b"\0\0" + b"\0\0\0\1\0\1t" + b"\xff" * 4
    )
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    answer = ask(request, 3)
    assert answer.error_code == 0
    return answer.member_id, answer.generation_id


def test_a_group_with_members_takes_commits_of_its_members_only(ask: Asker) -> None:
    member_id, generation = join(ask)
    assert commit(ask, {0: 1}) == [(0, ErrorCode.UNKNOWN_MEMBER_ID)]
    assert commit(ask, {0: 1}, member_id="x", generation_id_or_member_epoch=generation) == [
        (0, ErrorCode.UNKNOWN_MEMBER_ID)
    ]
    wrong = {"member_id": member_id, "generation_id_or_member_epoch": generation + 1}
    assert commit(ask, {0: 1}, **wrong) == [(0, ErrorCode.ILLEGAL_GENERATION)]
    right = {"member_id": member_id, "generation_id_or_member_epoch": generation}
    assert commit(ask, {0: 1}, **right) == [(0, ErrorCode.REBALANCE_IN_PROGRESS)], "it has no assignment yet"
    assert offsets(ask) == {}


def test_several_groups_are_fetched_at_once(ask: Asker) -> None:
    commit(ask, {0: 1})
    commit(ask, {1: 2}, group="h")
    groups = [FetchedGroup(group_id=name, topics=None) for name in ("g", "h", "nosuch")]
    answer = ask(OffsetFetchRequest(groups=groups, require_stable=True), 9)
    found = [
        (g.group_id, g.error_code, [p.committed_offset for t in g.topics for p in t.partitions]) for g in answer.groups
    ]
    assert found == [("g", 0, [1]), ("h", 0, [2]), ("nosuch", 0, [])]


# Without a coordinator


@pytest.mark.parametrize("version", OffsetFetchRequest.versions)
def test_before_anybody_looked_for_a_coordinator_there_is_none(make_asker: Callable[..., Asker], version: int) -> None:
    ask = make_asker()
    ask.broker.topics.create("t", 1)
    if version == 0:  # which came from the days when there was none to look for
        assert commit(ask, {0: 5}, 0) == [(0, 0)]
        assert fetch(ask, [0], 0) == {0: (5, -1, "", 0)}
        return
    assert commit(ask, {0: 5}, version) == [(0, ErrorCode.NOT_COORDINATOR)]
    answer = fetch_group(ask, [0], version, "g", "t")
    if version == 1:
        assert [p.error_code for t in answer.topics for p in t.partitions] == [ErrorCode.NOT_COORDINATOR]
    else:
        assert (answer.error_code, answer.topics) == (ErrorCode.NOT_COORDINATOR, [])
    assert ask(FindCoordinatorRequest(key="g"), 0).error_code == 0
    assert commit(ask, {0: 5}, version) == [(0, 0)]


def restarted(ask: Asker, make_asker: Callable[..., Asker]) -> Asker:
    ask.close()
    asker = make_asker()
    await_loaded(asker)
    return asker


def await_loaded(ask: Asker) -> None:
    while fetch_group(ask, None, 9, "g", "t").error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        pass  # the loader is a thread; pytest's timeout ends this


def test_offsets_survive_a_restart(ask: Asker, make_asker: Callable[..., Asker]) -> None:
    commit(ask, {0: 1, 1: 2}, committed_metadata="ü")
    commit(ask, {0: 3}, committed_leader_epoch=2)
    delete(ask, {"t": [1]})
    ask = restarted(ask, make_asker)
    assert fetch(ask, [0, 1]) == {0: (3, 2, "", 0), 1: (-1, -1, "", 0)}
    (group,) = ask(DescribeGroupsRequest(groups=["g"]), 5).groups
    assert (group.group_state, group.protocol_type) == ("Empty", "")


@pytest.mark.parametrize("version", OffsetFetchRequest.versions)
def test_while_groups_are_loaded_clients_are_told_so(
    ask: Asker, make_asker: Callable[..., Asker], monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    commit(ask, {0: 1})
    may_load = threading.Event()
    load = GroupJournal.load
    monkeypatch.setattr(GroupJournal, "load", lambda self, *rest: may_load.wait(60) and load(self, *rest))
    ask.close()
    ask = make_asker()
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert commit(ask, {0: 2}, version) == [(0, loading)]
    assert delete(ask, {"t": [0]}).error_code == loading
    answer = fetch_group(ask, [0], version, "g", "t")
    codes = [p.error_code for t in answer.topics for p in t.partitions] if version < 2 else [answer.error_code]
    assert codes == [loading]
    may_load.set()
    await_loaded(ask)
    assert offsets(ask) == {0: 1}


# Delete


def delete(ask: Asker, topics: dict[str, list[int]], group: str = "g") -> Any:
    wanted = [
        DeletedTopic(name=name, partitions=[DeletedTopic.OffsetDeleteRequestPartition(partition_index=i) for i in each])
        for name, each in topics.items()
    ]
    return ask(OffsetDeleteRequest(group_id=group, topics=wanted), 0)


def errors(answer: Any) -> dict[str, list[tuple[int, int]]]:
    return {topic.name: [(p.partition_index, p.error_code) for p in topic.partitions] for topic in answer.topics}


def test_offsets_are_deleted_one_by_one(ask: Asker) -> None:
    commit(ask, {0: 1, 1: 2})
    answer = delete(ask, {"t": [0, 2, 9], "nosuch": [0]})
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer.error_code == 0
    assert errors(answer) == {"t": [(9, unknown), (0, 0), (2, 0)], "nosuch": [(0, unknown)]}
    assert offsets(ask) == {1: 2}


def test_offsets_of_groups_that_cannot_lose_them(ask: Asker) -> None:
    assert delete(ask, {"t": [0]}, "nosuch").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert delete(ask, {"t": [0]}, "").error_code == ErrorCode.INVALID_GROUP_ID
    commit(ask, {0: 1})
    ask.broker.topics.create("u", 1)
    commit(ask, {0: 2}, topic="u")
    join(ask)
    answer = delete(ask, {"t": [0], "u": [0]})
    assert errors(answer) == {"t": [(0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)], "u": [(0, 0)]}
    assert fetch(ask, None) == {0: (1, -1, "", 0)}


# Expiry


def test_a_retention_time_of_the_request_is_the_offsets_own(ask: Asker) -> None:
    """Versions 2 to 4."""
    commit(ask, {0: 1}, 2, retention_time_ms=0)
    commit(ask, {1: 1}, 4, retention_time_ms=1_000_000)
    commit(ask, {2: 1}, 5)
    ask.broker.groups.expire_offsets(1_000_000)
    assert offsets(ask) == {1: 1, 2: 1}
    ask.broker.groups.expire_offsets(0)
    assert offsets(ask) == {1: 1}


def test_a_commit_time_of_the_request_counts(ask: Asker) -> None:
    """Version 1."""
    commit(ask, {0: 1}, 1, commit_timestamp=5)
    commit(ask, {1: 1}, 1)
    ask.broker.groups.expire_offsets(1_000_000)
    assert offsets(ask) == {1: 1}


def test_with_its_last_offset_a_group_is_gone_for_good(ask: Asker, make_asker: Callable[..., Asker]) -> None:
    commit(ask, {0: 1})
    ask.broker.groups.expire_offsets(0)
    for each in (ask, restarted(ask, make_asker)):
        assert offsets(each) == {}
        assert each(DescribeGroupsRequest(groups=["g"]), 5).groups[0].group_state == "Dead"


def test_what_a_group_waits_to_read_does_not_expire(ask: Asker) -> None:
    commit(ask, {0: 1})
    join(ask)
    ask.broker.groups.expire_offsets(0)
    assert offsets(ask) == {0: 1}


# Topics come and go


def test_a_deleted_topic_takes_its_offsets_along(ask: Asker, make_asker: Callable[..., Asker]) -> None:
    ask.broker.topics.create("u", 1)
    commit(ask, {0: 1})
    commit(ask, {0: 2}, topic="u")
    assert ask(DeleteTopicsRequest(topic_names=["t"]), 4).responses[0].error_code == 0
    ask.broker.topics.create("t", 3)
    assert fetch(ask, [0]) == {0: (-1, -1, "", 0)}
    ask = restarted(ask, make_asker)
    assert (fetch(ask, [0]), fetch(ask, [0], topic="u")) == ({0: (-1, -1, "", 0)}, {0: (2, -1, "", 0)})


def test_a_commit_in_a_topic_made_anew_outlives_the_removal_of_the_old_one_s_files(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(ask, {0: 1, 1: 1})

    def takes_its_time(trash: object, empty: Callable[..., None] = ask.logs.empty_trash) -> None:
        ask.broker.topics.create("t", 3)  # a producer's first record, say
        commit(ask, {0: 2})
        empty(trash)

    monkeypatch.setattr(ask.logs, "empty_trash", takes_its_time)
    ask.broker.topics.delete(ask.broker.topics.find("t", NO_ID), ask.broker.groups.on_topic_deleted)
    assert offsets(ask) == {0: 2}


def test_an_offset_of_an_older_topic_of_that_name_is_none(ask: Asker) -> None:
    """As a crash between the two steps of a topic's deletion leaves it."""
    commit(ask, {0: 1})
    older = ask.broker.topics.get("t")
    assert older is not None
    ask.broker.topics.delete(older)
    ask.broker.topics.create("t", 3)
    for version in (9, 10):
        assert fetch(ask, [0], version) == {0: (-1, -1, "", 0)}
        assert fetch(ask, None, version) == {}
    commit(ask, {0: 2})
    assert offsets(ask) == {0: 2}


def test_without_consumer_offsets_all_groups_are_forgotten(ask: Asker) -> None:
    commit(ask, {0: 1})
    assert ask(DeleteTopicsRequest(topic_names=["__consumer_offsets"]), 4).responses[0].error_code == 0
    assert commit(ask, {0: 2}) == [(0, ErrorCode.NOT_COORDINATOR)]
    assert ask(FindCoordinatorRequest(key="g"), 0).error_code == 0
    assert offsets(ask) == {}
    assert commit(ask, {0: 3}) == [(0, 0)]


def test_consumer_offsets_is_made_as_kafka_makes_it(make_asker: Callable[..., Asker]) -> None:
    ask = make_asker(offsets_topic_num_partitions="4", offsets_topic_segment_bytes="1000000")
    (answer,) = ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="__consumer_offsets")]), 9).topics
    assert (answer.error_code, answer.is_internal, len(answer.partitions)) == (0, True, 4)
    topic = ask.broker.topics.get("__consumer_offsets")
    assert topic is not None
    config = topic.partitions[3].config
    assert (config.compacts, config.deletes, config.segment_bytes) == (True, False, 1_000_000)


def test_partitions_that_are_added_to_consumer_offsets_move_no_group(ask: Asker) -> None:
    groups = [f"g{number}" for number in range(30)]
    for group in groups:
        commit(ask, {0: 1}, group=group)
    added = CreatePartitionsRequest.CreatePartitionsTopic(name="__consumer_offsets", count=60, assignments=None)
    assert ask(CreatePartitionsRequest(topics=[added]), 3).results[0].error_code == 0
    for group in groups:
        assert commit(ask, {0: 2}, group=group) == [(0, 0)]
        assert offsets(ask, group=group) == {0: 2}
    topic = ask.broker.topics.get("__consumer_offsets")
    assert topic is not None
    assert sorted(topic.partitions) == list(range(60))
    assert [number for number in range(50, 60) if topic.partitions[number].log_end_offset] == []


def test_commits_land_where_kafka_looks_for_them(ask: Asker) -> None:
    commit(ask, {0: 1}, group="gc848")
    topic = ask.broker.topics.get("__consumer_offsets")
    assert topic is not None and len(topic.partitions) == 50
    (record,) = read_all(topic.partitions[6])
    assert record.key is not None and decode_key(record.key) == OffsetCommitKey(group="gc848", topic="t", partition=0)
