"""Tests of OffsetCommit, OffsetFetch and OffsetDelete: every version, every error, and the offsets after a restart."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from hmb.coordinator.journal.writing import Journal
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.describe_groups import DescribeGroupsRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.messages.offset_commit import OffsetCommitRequest
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.broker.conftest import Asker
from tests.broker.groups.offset_calls import (
    BEFORE_IDS,
    NEWEST,
    FetchedGroup,
    Partition,
    Topic,
    await_loaded,
    commit,
    delete,
    fetch,
    fetch_group,
    join,
    offsets,
    restarted,
)


@pytest.fixture
def ask(make_asker: Callable[..., Asker]) -> Asker:
    """Return a client without a socket (`Asker`) for a broker that has the topic t and a group coordinator."""
    asker = make_asker()
    asker.broker.topics.create("t", 3)
    asker.broker.groups.make_topic()
    return asker


@pytest.mark.parametrize("version", OffsetCommitRequest.versions)
def test_commit_in_every_version(ask: Asker, version: int) -> None:
    assert commit(ask, {0: 5, 2: 7}, version, committed_metadata="m", committed_leader_epoch=4) == [(0, 0), (2, 0)]
    epoch = 4 if version >= 6 else -1
    assert fetch(ask, None) == {0: (5, epoch, "m", 0), 2: (7, epoch, "m", 0)}


@pytest.mark.parametrize("version", OffsetFetchRequest.versions)
def test_fetch_in_every_version(ask: Asker, version: int) -> None:
    commit(ask, {0: 5}, committed_metadata="m", committed_leader_epoch=4)
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if version == 0 else 0
    committed = (5, 4 if version >= 5 else -1, "m", 0)
    assert fetch(ask, [0, 1, 77], version) == {0: committed, 1: (-1, -1, "", error), 77: (-1, -1, "", error)}
    if version >= 2:
        assert fetch(ask, None, version) == {0: committed}


def test_commit_metadata_and_leader_epoch_minus_1_are_returned_unchanged(ask: Asker) -> None:
    """OffsetFetch returns the metadata of a commit unchanged. See behavior 11 in test_behaviours.py."""
    for text in ("", "ü€😀", '{"json": "\\n"}\n\0', " "):
        assert commit(ask, {0: 5}, committed_metadata=text, committed_leader_epoch=-1) == [(0, 0)]
        assert fetch(ask) == {0: (5, -1, text, 0)}
    commit(ask, {0: 6}, committed_metadata=None)
    assert fetch(ask) == {0: (6, -1, "", 0)}


def test_every_advertised_version_works_completely(ask: Asker) -> None:
    """A client can use every version that the broker advertises.

    OffsetCommit v10 and OffsetFetch v10 use topic ids. A client gets these ids from Metadata v10 or later, so the
    broker must advertise Metadata v10. See behavior 3 in test_behaviours.py.
    """
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
    """If the metadata for one partition is too long, only this partition gets an error.

    The length is counted in UTF-16 units, as in Kafka.
    """
    assert commit(ask, {0: 1}, committed_metadata="ü" * 4096) == [(0, 0)]
    for text in ("x" * 4097, "😀" * 2048 + "x"):
        assert commit(ask, {1: 1}, committed_metadata=text) == [(1, ErrorCode.OFFSET_METADATA_TOO_LARGE)]
    partitions = [Partition(partition_index=i, committed_metadata="x" * (4096 + i)) for i in range(2)]
    request = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=-1, topics=[Topic(name="t", partitions=partitions)]
    )
    (answer,) = ask(request, BEFORE_IDS).topics
    assert [p.error_code for p in answer.partitions] == [0, ErrorCode.OFFSET_METADATA_TOO_LARGE]


def test_a_partition_that_does_not_exist_is_refused_before_the_group_is_asked(ask: Asker) -> None:
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


def test_a_client_outside_of_groups_may_commit_to_an_empty_group(ask: Asker) -> None:
    assert commit(ask, {0: 1}, member_id="m", group_instance_id="i") == [(0, 0)]
    assert commit(ask, {0: 2}, generation_id_or_member_epoch=0) == [(0, ErrorCode.UNKNOWN_MEMBER_ID)]
    assert commit(ask, {0: 3}, group="") == [(0, 0)]
    assert (offsets(ask), offsets(ask, group="")) == ({0: 1}, {0: 3})


def test_a_group_with_members_accepts_only_commits_of_its_members(ask: Asker) -> None:
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


# -- requests before the topic of the group coordinator exists


@pytest.mark.parametrize("version", OffsetFetchRequest.versions)
def test_no_coordinator_exists_before_a_client_looks_for_one(make_asker: Callable[..., Asker], version: int) -> None:
    ask = make_asker()
    ask.broker.topics.create("t", 1)
    if version == 0:  # Version 0 is older than FindCoordinator, so its clients do not look for a coordinator.
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


def test_offsets_survive_a_restart(ask: Asker, make_asker: Callable[..., Asker]) -> None:
    commit(ask, {0: 1, 1: 2}, committed_metadata="ü")
    commit(ask, {0: 3}, committed_leader_epoch=2)
    delete(ask, {"t": [1]})
    ask = restarted(ask, make_asker)
    assert fetch(ask, [0, 1]) == {0: (3, 2, "", 0), 1: (-1, -1, "", 0)}
    (group,) = ask(DescribeGroupsRequest(groups=["g"]), 5).groups
    assert (group.group_state, group.protocol_type) == ("Empty", "")


@pytest.mark.parametrize("version", OffsetFetchRequest.versions)
def test_while_groups_are_loaded_clients_get_an_error(
    ask: Asker, make_asker: Callable[..., Asker], monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    commit(ask, {0: 1})
    may_load = threading.Event()
    load = Journal.load
    monkeypatch.setattr(Journal, "load", lambda self, *rest: may_load.wait(60) and load(self, *rest))
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
