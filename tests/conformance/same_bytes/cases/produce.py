"""Test cases for Produce: invalid topics and partitions, invalid acks, and invalid batches."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from hmb.protocol.messages.fetch import FetchRequest
from hmb.protocol.messages.produce import ProduceRequest
from hmb.records import Record, crc, encode_batch, encode_message_set
from hmb.records.compression import Codec

from ..case import ENOUGH, FOREVER, NOBODYS_ID, Case, Step, Topic, case, id_of
from ..fixtures import TIME, records
from .api_versions import OFFERS, named

TopicData = ProduceRequest.TopicProduceData
PartitionData = TopicData.PartitionProduceData
OWN = {"<name>": Topic(configs={"retention.ms": "-1"})}
GOOD = encode_batch(records("a", "b"))


def to(
    topic: str,
    *data: bytes | None,
    partition: int = 0,
    acks: int = -1,
    transactional_id: str | None = None,
    topic_id: Any = None,
) -> ProduceRequest:
    """Return a Produce request for one partition.

    If `data` has several items, the request names the partition several times.
    """
    parts = [PartitionData(index=partition, records=None if each is None else memoryview(each)) for each in data]
    known = {"topic_id": id_of(topic) if topic_id is None else topic_id}
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=10_000,
        topic_data=[TopicData(name=topic, partition_data=parts, **known)],
    )


def nobody(data: bytes | None = GOOD, **options: Any) -> ProduceRequest:
    return to("nobody", data, topic_id=NOBODYS_ID, **options)


def changed(data: bytes, position: int, layout: str, value: int, *, repair: bool = True) -> bytes:
    """Return a copy of the batch with another value in its header. With `repair`, the copy gets a correct CRC."""
    copy = bytearray(data)
    struct.pack_into(layout, copy, position, value)
    if repair:
        struct.pack_into(">I", copy, 17, crc.crc32c(memoryview(copy)[21:]))
    return bytes(copy)


def batch(*values: str, **options: Any) -> bytes:
    return encode_batch(records(*(values or ("a", "b"))), **options)


def by(producer: int, epoch: int, sequence: int, *values: str, **options: Any) -> bytes:
    return batch(*values, producer_id=producer, producer_epoch=epoch, base_sequence=sequence, **options)


# For the header fields see hmb/records/batch.py.
BAD_BATCHES: Mapping[str, bytes | None] = {
    "null": None,
    "empty": b"",
    "one byte": b"x",
    "16 bytes": bytes(16),
    "17 bytes": bytes(17),
    "header cut": GOOD[:60],
    "end cut": GOOD[:-1],
    "byte more": GOOD + b"x",
    "zeros": bytes(len(GOOD)),
    "wrong CRC": changed(GOOD, 17, ">I", 1, repair=False),
    "length too small": changed(GOOD, 8, ">i", 10),
    "length negative": changed(GOOD, 8, ">i", -1),
    "length one less": changed(GOOD, 8, ">i", len(GOOD) - 13),
    "magic 3": changed(GOOD, 16, ">b", 3),
    "magic -1": changed(GOOD, 16, ">b", -1),
    "messages v0": encode_message_set(records("a"), 0),
    "messages v1": encode_message_set(records("a"), 1),
    "codec 5": changed(GOOD, 21, ">h", 5),
    "codec 7": changed(GOOD, 21, ">h", 7),
    "says gzip, is not": changed(GOOD, 21, ">h", 1),
    "unknown attributes": changed(GOOD, 21, ">h", 0x80),
    "log append time": changed(GOOD, 21, ">h", 8),
    "transactional": changed(GOOD, 21, ">h", 0x10),
    "control": changed(GOOD, 21, ">h", 0x20),
    "delete horizon": changed(GOOD, 21, ">h", 0x40),
    "last offset delta 0": changed(GOOD, 23, ">i", 0),
    "last offset delta 5": changed(GOOD, 23, ">i", 5),
    "last offset delta -1": changed(GOOD, 23, ">i", -1),
    "base offset 5": changed(GOOD, 0, ">q", 5),
    "base offset -1": changed(GOOD, 0, ">q", -1),
    "count 0": changed(GOOD, 57, ">i", 0),
    "count 3": changed(GOOD, 57, ">i", 3),
    "count -1": changed(GOOD, 57, ">i", -1),
    "count of the highest": changed(changed(GOOD, 57, ">i", 2**31 - 1), 23, ">i", 2**31 - 2),
    "no records, all zero": changed(changed(GOOD[:61], 8, ">i", 49), 57, ">i", 0),
    "two batches": GOOD + GOOD,
    "record's length wrong": changed(GOOD, 61, ">b", 127),
    "record's attributes 1": changed(GOOD, 62, ">b", 1),
    "first offset delta 1": changed(GOOD, 64, ">b", 2),
    "same offset delta twice": changed(GOOD, len(GOOD) - 6, ">b", 0),
    "base timestamp -1": changed(GOOD, 27, ">q", -1),
    "max timestamp 0": changed(GOOD, 35, ">q", 0),
    "max timestamp -1": changed(GOOD, 35, ">q", -1),
    "far future": encode_batch(records("a", timestamp=4_000_000_000_000)),
    "negative time": encode_batch(records("a", timestamp=-5)),
    "leader epoch 7": changed(GOOD, 12, ">i", 7),
}
IDEMPOTENT: Mapping[str, list[bytes]] = {
    "good": [by(7, 0, 0), by(7, 0, 2)],
    "duplicate": [by(7, 0, 0), by(7, 0, 0)],
    "duplicate of an earlier": [by(7, 0, 0), by(7, 0, 2), by(7, 0, 0)],
    "duplicate of the sixth last": [by(7, 0, n, "a") for n in (0, 1, 2, 3, 4, 5, 0)],
    "duplicate with other records": [by(7, 0, 0, "a", "b"), by(7, 0, 0, "a", "b", "c")],
    "gap": [by(7, 0, 0), by(7, 0, 3)],
    "first sequence 5": [by(7, 0, 5)],
    "sequence -1": [by(7, 0, -1)],
    "sequence -5": [by(7, 0, -5)],
    "epoch -1": [by(7, -1, 0)],
    "producer -2": [by(-2, 0, 0)],
    "sequence without producer": [by(-1, -1, 5)],
    "epoch without producer": [by(-1, 3, -1)],
    "epoch goes up": [by(7, 0, 0), by(7, 1, 0)],
    "epoch goes up, sequence goes on": [by(7, 0, 0), by(7, 1, 2)],
    "epoch goes down": [by(7, 1, 0), by(7, 0, 0)],
    "epoch 5 first": [by(7, 5, 0)],
    "two producers": [by(7, 0, 0), by(8, 0, 0), by(7, 0, 2)],
    "sequence wraps": [by(7, 0, 2**31 - 2, "a", "b"), by(7, 0, 0)],
    "sequence wraps inside a batch": [by(7, 0, 2**31 - 2, "a", "b", "c", "d"), by(7, 0, 2)],
}


def fetched(topic: str = "<name>") -> FetchRequest:
    wanted = FetchRequest.FetchTopic.FetchPartition(partition_max_bytes=1 << 20)
    asked = FetchRequest.FetchTopic(topic=topic, topic_id=id_of(topic), partitions=[wanted])
    return FetchRequest(max_wait_ms=0, min_bytes=0, topics=[asked])


def stored(name: str, *data: bytes | None, versions: str = "13", topic: str = "<name>") -> Case:
    """Make a test case that sends a Produce request for each item of `data`, and then reads the log.

    By default, each comparison has its own topic. If the parameter `topic` is the name of a topic, the comparisons of
    all API versions append to this topic.
    """
    steps = [Step(to(topic, each), seconds=FOREVER if each is None else ENOUGH) for each in data]
    topics = OWN if topic == "<name>" else {}
    return case(name, *steps, fetched(topic), versions=versions, topics=topics, api_key=ProduceRequest.api_key)


def unanswered(name: str, request: ProduceRequest | Callable[[int], ProduceRequest], **options: Any) -> Case:
    """Make a test case with a Produce request with acks=0, which gets no response.

    A second request shows whether the connection is still open.
    """
    return case(
        name,
        Step(request, answered=False),
        named("test", "1"),
        api_key=ProduceRequest.api_key,
        ignored=OFFERS,
        **options,
    )


def several(*topics: TopicData, acks: int = -1) -> ProduceRequest:
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=list(topics))


def data(topic: str, topic_id: Any = None, **partitions: bytes | None) -> TopicData:
    parts = [
        PartitionData(index=int(index.lstrip("p")), records=None if each is None else memoryview(each))
        for index, each in partitions.items()
    ]
    return TopicData(name=topic, topic_id=id_of(topic) if topic_id is None else topic_id, partition_data=parts)


KEYLESS = [Record(0, TIME, b"k", b"a", ()), Record(0, TIME, None, b"b", ()), Record(0, TIME, None, b"c", ())]
CASES: list[Case] = [
    stored("good", GOOD, versions="3+", topic="all-versions"),
    *(
        stored(f"good, {codec.name.lower()}", batch(codec=codec), versions="3,6,7,13", topic="all-codecs")
        for codec in Codec
        if codec
    ),
    case("acks 1", to("all-versions", GOOD, acks=1)),
    case("acks 2", to("empty", GOOD, acks=2)),
    case("acks -2", to("empty", GOOD, acks=-2)),
    case("acks 32767", to("empty", GOOD, acks=32767)),
    case("acks 2, unknown topic", nobody(acks=2)),
    unanswered("acks 0", to("all-versions", GOOD, acks=0)),
    unanswered("acks 0, unknown topic", nobody(acks=0)),
    unanswered("acks 0, wrong CRC", to("empty", BAD_BATCHES["wrong CRC"], acks=0)),
    unanswered("acks 0, no topics", several(acks=0)),
    unanswered("acks 0, unknown partition", to("empty", GOOD, acks=0, partition=9)),
    case("unknown topic", nobody()),
    case("unknown partition", to("empty", GOOD, partition=9)),
    case("negative partition", to("empty", GOOD, partition=-1)),
    case("bad name", to("a/b", GOOD, topic_id=NOBODYS_ID), versions="3-12"),
    case("empty name", to("", GOOD, topic_id=NOBODYS_ID), versions="3-12"),
    case("id of zeros", to("", GOOD, topic_id=UUID(int=0)), versions="13"),
    case("no topics", several()),
    case("no partitions", several(data("empty"))),
    case("unknown topic, null records", nobody(None)),
    case("unknown topic, wrong CRC", nobody(BAD_BATCHES["wrong CRC"])),
    case("unknown topic, messages v1", nobody(BAD_BATCHES["messages v1"])),
    case("known and unknown topic", several(data("<name>", p0=GOOD), data("nobody", NOBODYS_ID, p0=GOOD)), topics=OWN),
    case(
        "good and bad partition",
        several(data("<name>", p0=GOOD, p1=BAD_BATCHES["wrong CRC"], p9=GOOD)),
        topics={"<name>": Topic(partitions=2)},
    ),
    case(
        "good and null partition",
        Step(
            several(data("<name>", p0=GOOD, p1=None)),
            seconds=FOREVER,
        ),
        versions="7",
        topics={"<name>": Topic(partitions=2)},
    ),
    case(
        "same topic twice",
        several(data("<name>", p0=GOOD), data("<name>", p1=GOOD)),
        topics={"<name>": Topic(partitions=2)},
    ),
    case("same partition twice", to("<name>", GOOD, GOOD), topics=OWN),
    case("internal topic", to("__consumer_offsets", GOOD)),
    *(stored(f"batch {what}", each) for what, each in BAD_BATCHES.items()),
    *(stored(f"idempotent {what}", *each, versions="7") for what, each in IDEMPOTENT.items()),
    case("transactional id without transactional batch", to("all-versions", GOOD, transactional_id="nobody")),
    case("transactional batch without id", to("empty", by(7, 0, 0, transactional=True))),
    case("too large", to("small", batch("x" * 2000))),
    case("too large, compressed small", to("small", batch("x" * 2000, codec=Codec.GZIP)), versions="7,13"),
    case("too large, wrong CRC", to("small", changed(batch("x" * 2000), 17, ">I", 1, repair=False))),
    case("compacted, keys", to("compacted", GOOD), versions="3,8,13"),
    case("compacted, no key", to("compacted", encode_batch(KEYLESS))),
    case("compacted, no key, compressed", to("compacted", encode_batch(KEYLESS, codec=Codec.GZIP))),
    case("log append time", to("append-time", GOOD), versions="3,8,13", may_differ=("log_append_time_ms",)),
    case(
        "log append time, far future",
        to("append-time", BAD_BATCHES["far future"]),
        versions="13",
        may_differ=("log_append_time_ms",),
    ),
    case(
        "log append time, duplicate",
        to("<name>", by(7, 0, 0)),
        to("<name>", by(7, 0, 0)),
        topics={"<name>": Topic(configs={"message.timestamp.type": "LogAppendTime"})},
        versions="13",
        may_differ=("log_append_time_ms",),
    ),
    case("gzip to a topic of gzip", to("<name>", batch(codec=Codec.GZIP)), topics={"<name>": Topic()}, versions="13"),
]
