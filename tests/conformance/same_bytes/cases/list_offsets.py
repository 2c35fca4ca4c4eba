"""Test cases for ListOffsets: timestamps, special timestamps, epochs, unknown topics and partitions."""

from __future__ import annotations

from hmb.protocol.messages.list_offsets import ListOffsetsRequest

from ..case import Case, case
from ..fixtures import TIME

Topic = ListOffsetsRequest.ListOffsetsTopic
Partition = Topic.ListOffsetsPartition


def at(
    topic: str, *timestamps: int, partition: int = 0, epoch: int = -1, isolation: int = 0, replica: int = -1
) -> ListOffsetsRequest:
    partitions = [Partition(partition_index=partition, current_leader_epoch=epoch, timestamp=t) for t in timestamps]
    return ListOffsetsRequest(
        replica_id=replica,
        isolation_level=isolation,
        topics=[Topic(name=topic, partitions=partitions)],
        timeout_ms=1000,
    )


def topics(*wanted: Topic) -> ListOffsetsRequest:
    return ListOffsetsRequest(replica_id=-1, topics=list(wanted))


SPECIAL = (-1, -2, -3, -4, -5, -6, -7, -(2**63))
TIMES = {
    "before all": 0,
    "at the first": TIME,
    "just after the first": TIME + 1,
    "between batches": TIME + 3_000,
    "inside a compressed batch": TIME + 11_000,
    "of a later, older record": TIME + 5_000,
    "at the greatest": TIME + 12_000,
    "after all": TIME + 12_001,
    "for ever": 2**63 - 1,
}
CASES: list[Case] = [
    *(case(f"timestamp {special}", at("filled", special)) for special in SPECIAL),
    *(case(f"timestamp {special}, empty log", at("empty", special)) for special in SPECIAL),
    *(case(f"timestamp {special}, unknown topic", at("nobody", special)) for special in (-1, -3, -5, -7)),
    *(case(f"time {what}", at("filled", time)) for what, time in TIMES.items()),
    case("time, empty log", at("empty", TIME)),
    case("unknown topic", at("nobody", -1)),
    case("unknown partition", at("filled", -1, partition=7)),
    case("negative partition", at("filled", -1, partition=-1)),
    case("no topics", topics()),
    case("no partitions", topics(Topic(name="filled"))),
    case("empty name", at("", -1)),
    case("bad name", at("a/b", -1)),
    case("same partition twice", at("filled", -1, -2)),
    case("same partition three times", at("filled", -1, -2, TIME)),
    case("same topic twice", topics(*(Topic(name="filled", partitions=[Partition(timestamp=t)]) for t in (-1, -2)))),
    case(
        "good and unknown", topics(*(Topic(name=n, partitions=[Partition(timestamp=-1)]) for n in ("nobody", "filled")))
    ),
    case("read committed, end", at("filled", -1, isolation=1), versions="2+"),
    case("read committed, time", at("filled", TIME, isolation=1), versions="2+"),
    case("isolation level 2", at("filled", -1, isolation=2), versions="2+"),
    case("isolation level -1", at("filled", -1, isolation=-1), versions="2+"),
    case("epoch as known", at("filled", -1, epoch=0), versions="4+"),
    case("epoch of the future", at("filled", -1, epoch=5), versions="4+"),
    case("epoch of the future, by time", at("filled", TIME, epoch=5), versions="4+"),
    case("epoch -2", at("filled", -1, epoch=-2), versions="4+"),
    case("replica 0", at("filled", -1, replica=0)),
    case("replica 9", at("filled", -1, replica=9)),
    case("replica -2, a debugger", at("filled", -1, replica=-2)),
    case("replica -3", at("filled", -1, replica=-3)),
]
