"""Test cases for DeleteRecords and OffsetForLeaderEpoch: the start of a log and the ends of its leader epochs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hmb.protocol.messages.delete_records import DeleteRecordsRequest
from hmb.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest

from ..case import Case, Step, Topic, case
from .fetch import of
from .list_offsets import at
from .produce import GOOD, to

DeletedTopic = DeleteRecordsRequest.DeleteRecordsTopic
AskedTopic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
OWN = {"<name>": Topic(partitions=2, configs={"retention.ms": "-1"})}
FILLED = [Step(to("<name>", GOOD)), Step(to("<name>", GOOD))]  # offsets 0-1 and 2-3


def delete(offsets: Mapping[int, int], topic: str = "<name>", timeout: int = 10_000) -> DeleteRecordsRequest:
    return deleted(DeletedTopic(name=topic, partitions=_partitions(offsets)), timeout=timeout)


def deleted(*topics: DeletedTopic, timeout: int = 10_000) -> DeleteRecordsRequest:
    return DeleteRecordsRequest(topics=list(topics), timeout_ms=timeout)


def _partitions(offsets: Mapping[int, int]) -> list[DeletedTopic.DeleteRecordsPartition]:
    return [DeletedTopic.DeleteRecordsPartition(partition_index=n, offset=offset) for n, offset in offsets.items()]


def epochs(
    topic: str, *wanted: int, partition: int = 0, current: int = -1, replica: int = -1
) -> OffsetForLeaderEpochRequest:
    asked = [
        AskedTopic.OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
        for epoch in wanted
    ]
    return OffsetForLeaderEpochRequest(replica_id=replica, topics=[AskedTopic(topic=topic, partitions=asked)])


def then_read(name: str, request: DeleteRecordsRequest, versions: str = "2") -> Case:
    """Make a test case that deletes records, requests the log start offset, and fetches from the offsets 0 and 2."""
    steps: list[Any] = [*FILLED, request, at("<name>", -2), of("<name>", 0), of("<name>", 2)]
    return case(name, *steps, topics=OWN, versions=versions, api_key=DeleteRecordsRequest.api_key)


DELETE = [
    *(then_read(f"to {offset}", delete({0: offset})) for offset in (0, 1, 2, 3, 4, 5, -1, -2, 2**63 - 1)),
    then_read("to 2, then to 1", delete({0: 2}), "0,1,2"),
    case("back", *FILLED, delete({0: 2}), delete({0: 1}), topics=OWN, versions="2"),
    case("both partitions", *FILLED, delete({0: 2, 1: 0}), topics=OWN, versions="2"),
    case("empty log, to 0", delete({0: 0}, "empty")),
    case("empty log, to -1", delete({0: -1}, "empty")),
    case("empty log, to 1", delete({0: 1}, "empty")),
    case("none", deleted()),
    case("no partitions", delete({}, "empty")),
    case("unknown topic", delete({0: 0}, "nobody")),
    case("unknown partition", delete({0: 0, 9: 0, -1: 0}, "empty")),
    case("bad name", delete({0: 0}, "a/b")),
    case("compacted", delete({0: 0}, "compacted")),
    case("internal", delete({0: 0}, "__consumer_offsets")),
    case("timeout 0", delete({0: 0}, "empty", 0)),
    case(
        "same partition twice",
        deleted(DeletedTopic(name="empty", partitions=[*_partitions({0: 0}), *_partitions({0: 1})])),
    ),
    case("same topic twice", deleted(*(DeletedTopic(name="empty", partitions=_partitions({0: n})) for n in (0, 1)))),
]
EPOCH = [
    *(case(f"epoch {epoch}", epochs("filled", epoch)) for epoch in (0, 1, 5, -1, -2, 2**31 - 1)),
    *(case(f"empty log, epoch {epoch}", epochs("empty", epoch)) for epoch in (0, 1, -1)),
    *(case(f"current epoch {current}", epochs("filled", 0, current=current)) for current in (0, 1, -2)),
    case("unknown topic", epochs("nobody", 0)),
    case("unknown partition", epochs("filled", 0, partition=9)),
    case("negative partition", epochs("filled", 0, partition=-1)),
    case("bad name", epochs("a/b", 0)),
    case("no partitions", epochs("filled")),
    case("same partition twice", epochs("filled", 0, 1)),
    case("no topics", OffsetForLeaderEpochRequest(replica_id=-1)),
    *(case(f"replica {replica}", epochs("filled", 0, replica=replica), versions="3+") for replica in (0, 5, -2, -3)),
]
CASES: list[Case] = [*DELETE, *EPOCH]
