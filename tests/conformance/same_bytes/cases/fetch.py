"""Test cases for Fetch: invalid offsets, sizes, sessions and epochs."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hmb.protocol.messages.fetch import FetchRequest

from ..case import NOBODYS_ID, Case, Step, captured, case, id_of

FetchTopic = FetchRequest.FetchTopic
Partition = FetchTopic.FetchPartition
OFFSETS = (0, 1, 2, 3, 4, 5, 6, 7, 8, -1, -2, 2**63 - 1, -(2**63))


def of(
    topic: str,
    offset: int = 0,
    *,
    partition: int = 0,
    size: int = 1 << 20,
    epoch: int = -1,
    last_epoch: int = -1,
    topic_id: Any = None,
    **options: Any,
) -> FetchRequest:
    wanted = Partition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=size,
        current_leader_epoch=epoch,
        last_fetched_epoch=last_epoch,
    )
    known = id_of(topic) if topic_id is None else topic_id
    return asking(FetchTopic(topic=topic, topic_id=known, partitions=[wanted]), **options)


def asking(*topics: FetchTopic, **options: Any) -> FetchRequest:
    return FetchRequest(**{"max_wait_ms": 0, "min_bytes": 0, "topics": list(topics), **options})


def topic(name: str, *partitions: int, offset: int = 0, size: int = 1 << 20) -> FetchTopic:
    asked = [Partition(partition=number, fetch_offset=offset, partition_max_bytes=size) for number in partitions]
    return FetchTopic(topic=name, topic_id=id_of(name), partitions=asked)


def later(epoch: int, *topics: FetchTopic, **options: Any) -> FetchRequest:
    """Return a Fetch request in the session that the first request of the case has opened."""
    return asking(*topics, **{"session_id": captured("session"), "session_epoch": epoch, **options})


def session(name: str, *steps: FetchRequest) -> Case:
    """Make a test case that opens a fetch session on two partitions, and then runs `steps`.

    One of the partitions is empty.
    """
    opened = asking(topic("filled", 0, offset=5), topic("three", 1), session_epoch=0)
    begin = Step(opened, capture={"session": lambda answer: answer.session_id})
    return case(f"session, {name}", begin, *steps, versions="7+", may_differ=["session_id"])


def forget(topic: str, *partitions: int) -> dict[str, Any]:
    left = FetchRequest.ForgottenTopic(topic=topic, topic_id=id_of(topic), partitions=list(partitions))
    return {"forgotten_topics_data": [left]}


SESSIONS = [
    session("nothing new", later(1)),
    session("again and again", later(1), later(2), later(3)),
    session("another offset", later(1, topic("filled", 0, offset=6)), later(2)),
    session("all read", later(1, topic("filled", 0, offset=7)), later(2)),
    session("offset out of range", later(1, topic("filled", 0, offset=99)), later(2)),
    session("one more partition", later(1, topic("three", 2)), later(2)),
    session("unknown partition", later(1, topic("three", 9)), later(2)),
    session("forget one", later(1, **forget("filled", 0)), later(2)),
    session("forget all", later(1, **forget("filled", 0)), later(2, **forget("three", 1)), later(3)),
    session("forget what is not there", later(1, **forget("empty", 0)), later(2)),
    session("same epoch twice", later(1), later(1)),
    session("epoch left out", later(2)),
    session("epoch -5", later(-5)),
    session("closed", later(-1), later(1)),
    session("closed, with partitions", later(-1, topic("filled", 0)), later(1)),
    session("opened anew", later(0, topic("three", 0)), later(1)),
]
CASES: list[Case] = [
    *SESSIONS,
    *(case(f"offset {offset}", of("filled", offset)) for offset in OFFSETS),
    case("empty log", of("empty")),
    case("empty log, offset 1", of("empty", 1)),
    case("empty log, min bytes, waiting", of("empty", min_bytes=1, max_wait_ms=30), versions="4,8,13"),
    case("wait of -1", of("empty", min_bytes=1, max_wait_ms=-1)),
    case("unknown topic", of("nobody", topic_id=NOBODYS_ID)),
    case("unknown partition", of("filled", partition=9)),
    case("negative partition", of("filled", partition=-1)),
    case("bad name", of("a/b", topic_id=NOBODYS_ID), versions="4-12"),
    case("empty name", of("", topic_id=NOBODYS_ID), versions="4-12"),
    case("id of zeros", of("", topic_id=UUID(int=0)), versions="13+"),
    case(
        "known and unknown topic",
        asking(
            topic("filled", 0),
            FetchTopic(topic="nobody", topic_id=NOBODYS_ID, partitions=[Partition(partition_max_bytes=100)]),
        ),
    ),
    case("good and unknown partition", asking(topic("three", 0, 7, 1))),
    case("no topics", asking()),
    case("no topics, waiting", asking(max_wait_ms=30, min_bytes=1)),
    case("no partitions", asking(topic("filled"))),
    case("same partition twice", asking(topic("filled", 0, 0))),
    case("same topic twice", asking(topic("three", 0), topic("three", 1))),
    *(case(f"partition max bytes {size}", of("filled", size=size)) for size in (0, 1, 100, -1, -(2**31))),
    *(case(f"max bytes {size}", of("filled", max_bytes=size)) for size in (0, 1, 100, -1, -(2**31))),
    case("max bytes 0, min bytes 1, waiting", of("filled", max_bytes=0, min_bytes=1, max_wait_ms=30)),
    case("max bytes 0, several partitions", asking(topic("filled", 0), topic("three", 0, 1), max_bytes=0)),
    case("min bytes -1", of("filled", min_bytes=-1)),
    case("min bytes of the highest", of("filled", min_bytes=2**31 - 1, max_wait_ms=10)),
    case("read committed", of("filled", isolation_level=1)),
    case("read committed, empty", of("empty", isolation_level=1)),
    case("isolation level 2", of("filled", isolation_level=2)),
    case("isolation level -1", of("filled", isolation_level=-1)),
    case("replica 0", of("filled", replica_id=0), versions="4-14"),
    case("replica 5", of("filled", replica_id=5), versions="4-14"),
    case("replica -2", of("filled", replica_id=-2), versions="4-14"),
    case(
        "replica 5 by state",
        of("filled", replica_state=FetchRequest.ReplicaState(replica_id=5, replica_epoch=1)),
        versions="15+",
    ),
    case("epoch as known", of("filled", epoch=0), versions="9+"),
    case("epoch of the future", of("filled", epoch=4), versions="9+"),
    case("epoch -2", of("filled", epoch=-2), versions="9+"),
    case("last fetched epoch as known", of("filled", 3, epoch=0, last_epoch=0), versions="12+"),
    case("last fetched epoch of the future", of("filled", 3, epoch=0, last_epoch=4), versions="12+"),
    case("last fetched epoch -2", of("filled", 3, last_epoch=-2), versions="12+"),
    case("rack", of("filled", rack_id="r1"), versions="11+"),
    case("cluster id of another", of("filled", cluster_id="another"), versions="12+"),
    case("unknown session", of("filled", session_id=12345, session_epoch=1), versions="7+"),
    case("unknown session to close", of("filled", session_id=12345, session_epoch=-1), versions="7+"),
    case(
        "unknown session, epoch 0",
        of("filled", session_id=12345, session_epoch=0),
        versions="7+",
        may_differ=("session_id",),
    ),
    case("no session, epoch 5", of("filled", session_epoch=5), versions="7+"),
    case("no session, epoch -1", of("filled", session_epoch=-1), versions="7+"),
    case("new session", of("filled", session_epoch=0), versions="7+", may_differ=("session_id",)),
    case("new session, no topics", asking(session_epoch=0), versions="7+", may_differ=("session_id",)),
    case(
        "new session, unknown topic",
        of("nobody", topic_id=NOBODYS_ID, session_epoch=0),
        versions="7+",
        may_differ=("session_id",),
    ),
]
