"""Tests of the APIs that change the states of many share-partitions in one request (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from hmb.coordinator.journal.records import decode_key
from hmb.coordinator.share.state_records import STATE_KEYS, ShareSnapshotKey, ShareUpdateKey
from hmb.protocol.enums import INT64_MAX
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.delete_share_group_state import DeleteShareGroupStateRequest
from hmb.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from hmb.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from hmb.protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from hmb.records import read_records
from hmb.storage.log import Log
from tests.broker.conftest import Asker

MakeAsker = Callable[..., Asker]
GROUP, PARTITIONS = "s", 200


@pytest.fixture
def ask(make_asker: MakeAsker) -> Iterator[Asker]:
    few = ("offsets_topic_num_partitions", "share_coordinator_state_topic_num_partitions")
    yield open_with_topic(make_asker, **dict.fromkeys(few, "2"))


@pytest.fixture
def syncs(ask: Asker, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Observe all later syncs. For each sync of a log, the returned list gets the name of the log's directory."""
    names: list[str] = []
    flush = Log.flush

    def counted(log: Log) -> None:
        names.append(log.directory.name)
        flush(log)

    initialize(ask, [0], start_offset=0)  # This request creates the topic of the states.
    monkeypatch.setattr(Log, "flush", counted)
    return names


def open_with_topic(make_asker: MakeAsker, **properties: str) -> Asker:
    """Open a broker. Create the topic `t`, and the topic `__consumer_offsets` for the state of groups."""
    ask = make_asker(**properties)
    ask(FindCoordinatorRequest(key=GROUP), 0)
    ask.broker.topics.create("t", 1)
    return ask


def topic_id(ask: Asker) -> UUID:
    found = ask.broker.topics.get("t")
    assert found is not None
    return found.id


def initialize(ask: Asker, numbers: list[int], start_offset: int) -> list[int]:
    kind = InitializeShareGroupStateRequest.InitializeStateData
    partitions = [kind.PartitionData(partition=number, state_epoch=0, start_offset=start_offset) for number in numbers]
    request = InitializeShareGroupStateRequest(
        group_id=GROUP, topics=[kind(topic_id=topic_id(ask), partitions=partitions)]
    )
    return codes(ask(request, 0))


def write(ask: Asker, numbers: list[int], start_offset: int) -> list[int]:
    kind = WriteShareGroupStateRequest.WriteStateData
    partitions = [kind.PartitionData(partition=number, state_epoch=0, start_offset=start_offset) for number in numbers]
    topics = [kind(topic_id=topic_id(ask), partitions=partitions)]
    return codes(ask(WriteShareGroupStateRequest(group_id=GROUP, topics=topics), 1))


def delete(ask: Asker, numbers: list[int]) -> list[int]:
    kind = DeleteShareGroupStateRequest.DeleteStateData
    partitions = [kind.PartitionData(partition=number) for number in numbers]
    topics = [kind(topic_id=topic_id(ask), partitions=partitions)]
    return codes(ask(DeleteShareGroupStateRequest(group_id=GROUP, topics=topics), 0))


def codes(response: Any) -> list[int]:
    return [partition.error_code for partition in response.results[0].partitions]


def test_one_request_syncs_each_partition_of_the_journal_at_most_once(ask: Asker, syncs: list[str]) -> None:
    # Before, each share-partition needed a sync of its own: a request with 1,000 share-partitions took 3.6 s.
    numbers = list(range(PARTITIONS))
    for change in (
        lambda: initialize(ask, numbers, 5),
        lambda: write(ask, numbers, 6),
        lambda: delete(ask, numbers),
    ):
        syncs.clear()
        assert change() == [ErrorCode.NONE] * PARTITIONS
        assert sorted(syncs) == ["__share_group_state-0", "__share_group_state-1"]


def test_a_refused_share_partition_does_not_stop_the_others(ask: Asker) -> None:
    initialize(ask, [0, 2], 5)
    assert write(ask, [0, 1, 2], 6) == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST, ErrorCode.NONE]


def test_the_lag_from_the_lowest_start_offset_fits_into_the_response(ask: Asker) -> None:
    # InitializeShareGroupState accepts any start offset. The lag from -2^63 to the log end needs more than 63 bits.
    ask(ShareGroupHeartbeatRequest(group_id=GROUP, member_id="m", member_epoch=0, subscribed_topic_names=["t"]), 1)
    initialize(ask, [0], -(2**63))
    group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=None)
    (described,) = ask(DescribeShareGroupOffsetsRequest(groups=[group]), 1).groups
    assert described.topics[0].partitions[0].lag == INT64_MAX


def test_a_snapshot_follows_after_the_configured_number_of_updates(make_asker: MakeAsker) -> None:
    ask = open_with_topic(
        make_asker,
        share_coordinator_state_topic_num_partitions="1",
        share_coordinator_snapshot_update_records_per_snapshot="2",
    )
    initialize(ask, [0], 5)
    for start_offset in (6, 7, 8, 9):
        write(ask, [0], start_offset)
    states = ask.broker.topics.get("__share_group_state")
    assert states is not None
    data = states.log(0).read(0, 10_000).records.read()
    types = [type(decode_key(record.key or b"", STATE_KEYS)) for record in read_records(data)]
    assert types == [ShareSnapshotKey, ShareUpdateKey, ShareUpdateKey, ShareSnapshotKey, ShareUpdateKey]
