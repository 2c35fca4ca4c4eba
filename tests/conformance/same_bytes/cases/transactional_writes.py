"""Test cases for Produce, TxnOffsetCommit and WriteTxnMarkers, and for the records that consumers then see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hmb.protocol.messages.describe_producers import DescribeProducersRequest
from hmb.protocol.messages.fetch import FetchRequest
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from hmb.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from hmb.protocol.schema import Request

from ..case import Case, Topic, case, id_of, made
from . import offsets as plain
from .groups import stable
from .produce import by
from .transactions import EARLIER, EPOCH, ID, LATER, OTHER_ID, add, end, init, offsets, over

TopicData = ProduceRequest.TopicProduceData
Fetched = FetchRequest.FetchTopic
Committed = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
CommittedPartition = Committed.TxnOffsetCommitRequestPartition
Marker = WriteTxnMarkersRequest.WritableTxnMarker
OWN = {"<name>": Topic(configs={"retention.ms": "-1"})}
BROKERS_OWN = ("producer_id", "records", "last_timestamp", "transaction_start_time_ms")


def produce(
    sequence: int = 0,
    *,
    epochs_on: int = 0,
    name: str | None = "<name>",
    transactional: bool = True,
    partition: int = 0,
) -> ProduceRequest:
    """Return a Produce request with two records. The producer id comes from an earlier response of the broker.

    The producer epoch is the epoch in that response plus `epochs_on`.
    """
    data = made(
        lambda known: memoryview(by(known["id"], known["epoch"] + epochs_on, sequence, transactional=transactional))
    )
    part = TopicData.PartitionProduceData(index=partition, records=data)
    topic = TopicData(name="<name>", topic_id=id_of("<name>"), partition_data=[part])
    return ProduceRequest(transactional_id=name, acks=-1, timeout_ms=10_000, topic_data=[topic])


def seen(committed: bool = True) -> FetchRequest:
    part = Fetched.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
    topic = Fetched(topic="<name>", topic_id=id_of("<name>"), partitions=[part])
    return FetchRequest(max_wait_ms=0, max_bytes=1_000_000, isolation_level=int(committed), topics=[topic])


def known(*partitions: int, topic: str = "<name>") -> DescribeProducersRequest:
    asked = DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=list(partitions or (0,)))
    return DescribeProducersRequest(topics=[asked])


def writing(name: str, *steps: Any, **options: Any) -> Case:
    """Make a test case that runs `steps`, reads with both isolation levels, and describes the partition's producers."""
    then = (seen(False), seen(), known())
    return case(
        name, init(), *steps, *then, api_key=ProduceRequest.api_key, topics=OWN, may_differ=BROKERS_OWN, **options
    )


MINE = ("<name>", 0)
WRITING = [
    writing("in a transaction", add(MINE), produce()),
    writing("in a transaction that is not given", produce()),
    writing("in a transaction, committed", add(MINE), produce(), end(), over()),
    writing("in a transaction, aborted", add(MINE), produce(), end(False), over()),
    writing("idempotent duplicate in a transaction", add(MINE), produce(), produce()),
    writing("in a transaction, a gap", add(MINE), produce(), produce(5)),
    writing("in a transaction, a gap at its beginning", add(MINE), produce(5)),
    writing("in a transaction, earlier epoch", add(MINE), produce(epochs_on=-1)),
    writing("in a transaction, later epoch", add(MINE), produce(epochs_on=1)),
    writing("in a transaction, unknown id", produce(name="<name>-nobody")),
    writing("in a transaction, empty id", produce(name="")),
    writing("in a transaction, unknown partition", produce(partition=5)),
    writing("in a transaction, a batch that is not", add(MINE), produce(), produce(2, transactional=False)),
    writing("after a transaction, its epoch", add(MINE), produce(), end(), over(), produce(2)),
    writing("after a transaction, the next epoch", add(MINE), produce(), end(), over(), produce(epochs_on=1)),
    writing(
        "after a transaction, the next epoch and a gap", add(MINE), produce(), end(), over(), produce(5, epochs_on=1)
    ),
    writing("after its producer was shut out", add(MINE), produce(), init(), produce(2, epochs_on=-2)),
]


def commit(
    topic: str = "three", offsets: Mapping[int, int] | None = None, metadata: str | None = "m", **options: Any
) -> Callable[[int], Request]:
    parts = [
        CommittedPartition(partition_index=index, committed_offset=offset, committed_metadata=metadata)
        for index, offset in (offsets or {0: 5}).items()
    ]
    given: dict[str, Any] = {
        "transactional_id": "<name>",
        "group_id": "<name>",
        "producer_id": ID,
        "producer_epoch": EPOCH,
        "topics": [Committed(name=topic, partitions=parts)],
    }
    return lambda version: TxnOffsetCommitRequest(**(given | options))


def committing(name: str, *steps: Any, **options: Any) -> Case:
    """Make a test case that runs `steps` and fetches the group's offsets with and without `require_stable`."""
    asked = {"three": [0, 1]}
    then = (plain.fetch(asked, stable=True), plain.fetch(asked), plain.fetch(None, stable=True))
    return case(
        name,
        *steps,
        *then,
        api_key=TxnOffsetCommitRequest.api_key,
        may_differ=("producer_id", "transaction_start_time_ms"),
        **options,
    )


def offset(value: int) -> Callable[[int], Request]:
    return commit(offsets={0: value})


COMMITTING = [
    committing("in a transaction", init(), offsets(), commit()),
    committing("in a transaction that is not given", init(), commit()),
    committing("committed", init(), offsets(), commit(), end(), over()),
    committing("aborted", init(), offsets(), commit(), end(False), over()),
    committing("over another, aborted", plain.commit(offsets={0: 1}), init(), offsets(), commit(), end(False), over()),
    committing("over another, committed", plain.commit(offsets={0: 1}), init(), offsets(), commit(), end(), over()),
    committing("then a plain one", init(), offsets(), commit(), plain.commit(offsets={0: 1}), end(), over()),
    committing("twice", init(), offsets(), offset(3), offset(4), end(), over()),
    committing("unknown topic", init(), offsets(), commit("nobody")),
    committing("unknown partition", init(), offsets(), commit(offsets={0: 1, 7: 1})),
    committing("no topics", init(), offsets(), commit(topics=[])),
    committing("null metadata", init(), offsets(), commit(metadata=None), end(), over()),
    committing("metadata of 4,097", init(), offsets(), commit(metadata="x" * 4097), end(), over()),
    committing("empty group", init(), offsets(), commit(group_id="")),
    committing("unknown id", init(), commit(transactional_id="<name>-nobody")),
    committing("empty id", init(), commit(transactional_id="")),
    committing("other producer", init(), offsets(), commit(producer_id=OTHER_ID)),
    committing("earlier epoch", init(), offsets(), commit(producer_epoch=EARLIER)),
    committing("later epoch", init(), offsets(), commit(producer_epoch=LATER)),
    committing("generation of nobody", init(), offsets(), commit(generation_id=1), versions="3+"),
    committing("member of nobody", init(), offsets(), commit(member_id="me"), versions="3+"),
    committing("by a member", *stable(), init(), offsets(), commit(generation_id=1, member_id=plain.ME), versions="3+"),
    committing(
        "by an older generation",
        *stable(),
        init(),
        offsets(),
        commit(generation_id=0, member_id=plain.ME),
        versions="3+",
    ),
    committing("by a stranger", *stable(), init(), offsets(), commit(generation_id=1, member_id="x"), versions="3+"),
    committing("by nobody, of a group with members", *stable(), init(), offsets(), commit()),
]


def marker(
    commits: bool = True,
    *,
    id: Any = ID,
    epoch: Any = EPOCH,
    topic: str = "<name>",
    coordinator: int = 0,
    rules: int = 0,
) -> Callable[[int], Request]:
    place = Marker.WritableTxnMarkerTopic(name=topic, partition_indexes=[0])
    one = Marker(
        producer_id=id,
        producer_epoch=epoch,
        transaction_result=commits,
        topics=[place],
        coordinator_epoch=coordinator,
        transaction_version=rules,
    )
    return lambda version: WriteTxnMarkersRequest(markers=[one])


def marking(name: str, *steps: Any, describes: bool = True) -> Case:
    """Make a test case that writes transaction markers in its `steps`, and then fetches the records.

    If `describes` is true, the case also sends a DescribeProducers request. A case with several producers does not send
    this request, because Kafka returns the producers in any order.
    """
    then = (seen(), known()) if describes else (seen(),)
    return case(
        *(name, init(), add(MINE), produce(), *steps, *then),
        api_key=WriteTxnMarkersRequest.api_key,
        topics=OWN,
        may_differ=BROKERS_OWN,
    )


MARKING = [
    marking("commit", marker()),
    marking("abort", marker(False)),
    marking("twice", marker(), marker()),
    marking("later epoch", marker(epoch=LATER)),
    marking("earlier epoch", marker(epoch=LATER), marker()),
    marking("other producer", marker(id=OTHER_ID), describes=False),
    marking("older coordinator", marker(coordinator=3), marker(coordinator=1)),
    marking("unknown topic", marker(topic="nobody")),
    marking("no markers", WriteTxnMarkersRequest()),
    marking("by the rules of version 2", marker(rules=2)),
    marking("by the rules of version 2, later epoch", marker(rules=2, epoch=LATER)),
    marking("by the rules of 2, later epoch, twice", marker(rules=2, epoch=LATER), marker(rules=2, epoch=LATER)),
]
KNOWN = [
    case("no topics", DescribeProducersRequest()),
    case("unknown topic", known(topic="nobody")),
    case("unknown partition", known(0, 7), topics=OWN),
    case("no producers", known(topic="empty")),
    case("idempotent", init(), produce(name=None, transactional=False), known(), topics=OWN, may_differ=BROKERS_OWN),
]
CASES: list[Case] = [*WRITING, *COMMITTING, *MARKING, *KNOWN]
