"""Two classes, `Writer` and `Reader`, through which a test can use many different Kafka clients.

A writer sends each line of a file as the value of one record, without a key, to a topic with one partition. A reader
reads `count` records from the start of that partition, without a consumer group, and returns their values as lines.

The test compares the file that the writer sends with the lines that the reader returns, byte for byte. The test
therefore finds lost, repeated, reordered and changed records. The console tools transfer text, so the lines are UTF-8
and contain no CR or LF.

Each writer lists the codecs that it supports. A reader must read all codecs, except those that its client refuses.
Example: aiokafka refuses lz4 in message format 0, because the lz4 frames have a wrong header checksum (KAFKA-3160).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.structs import TopicPartition as AioTopicPartition
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

import hmb

from . import java_clients

STALL_SECONDS = 30.0  # After this time without a record, a reader stops.
IN_FLIGHT = 10_000  # the maximum number of unacknowledged records, for clients without their own limit
ERRORS_ONLY = 3  # librdkafka uses the log levels of syslog. Level 3 means "error".
ALL_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
NULL = b"<null>"
OLD_CODECS = ("none", "gzip", "snappy", "lz4")  # all codecs before Kafka 2.1, which added zstd


@dataclass(frozen=True)
class Writer:
    """A client that produces. `write(bootstrap, topic, lines, codec)` returns when every record is acknowledged."""

    name: str
    write: Callable[[str, str, Path, str], None]
    codecs: tuple[str, ...] = ALL_CODECS
    magic: int = 2  # the message format that the client sends


@dataclass(frozen=True)
class Reader:
    """A client that consumes: `read(bootstrap, topic, count)` returns the values as lines.

    It returns fewer than `count` lines if no more records arrive.
    """

    name: str
    read: Callable[[str, str, int], bytes]
    refuses: frozenset[tuple[int, str]] = frozenset()  # each (message format, codec) that the client cannot read


def values(lines: Path) -> Iterator[bytes]:
    with lines.open("rb") as file:
        for line in file:
            yield line.rstrip(b"\n")


def write_hmb(bootstrap: str, topic: str, lines: Path, codec: str) -> None:
    with hmb.Producer(bootstrap, compression=codec) as producer:
        acks = [producer.send(topic, value) for value in values(lines)]
        producer.flush()
        for ack in acks:
            ack.result(timeout=STALL_SECONDS)


def read_hmb(bootstrap: str, topic: str, count: int) -> bytes:
    consumer = hmb.Consumer(bootstrap, topic, offset="earliest", until="end")
    try:
        return b"".join((record.value or NULL) + b"\n" for record, _ in zip(consumer, range(count), strict=False))
    finally:
        consumer.close()


def write_confluent(bootstrap: str, topic: str, lines: Path, codec: str) -> None:
    failures: list[confluent_kafka.KafkaError] = []

    def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            failures.append(error)

    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "linger.ms": 5,
            "enable.idempotence": True,
            "log_level": ERRORS_ONLY,
        }
    )
    for value in values(lines):
        while len(producer) >= IN_FLIGHT:
            producer.poll(0.1)
        producer.produce(topic, value, on_delivery=delivered)
    left = producer.flush(STALL_SECONDS)
    if failures or left:
        raise AssertionError(f"confluent-kafka: {left} records not acked, {len(failures)} failed: {failures[:1]}")


def read_confluent(bootstrap: str, topic: str, count: int) -> bytes:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "assigned-by-hand",  # librdkafka requires a group id, although assign() does not use it.
            "enable.auto.commit": False,
            "log_level": ERRORS_ONLY,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
    parts: list[bytes] = []
    try:
        while len(parts) < count:
            messages = consumer.consume(min(count - len(parts), 10_000), timeout=STALL_SECONDS)
            if not messages:
                break
            for message in messages:
                if message.error():
                    raise AssertionError(f"confluent-kafka: {message.error()}")
                parts.append((message.value() or NULL) + b"\n")
    finally:
        consumer.close()
    return b"".join(parts)


def write_kafka_python(bootstrap: str, topic: str, lines: Path, codec: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, compression_type=None if codec == "none" else codec, linger_ms=5, acks="all"
    )
    acks = [producer.send(topic, value) for value in values(lines)]
    producer.flush(STALL_SECONDS)
    for ack in acks:
        ack.get(timeout=STALL_SECONDS)
    producer.close()


def read_kafka_python(bootstrap: str, topic: str, count: int) -> bytes:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    parts: list[bytes] = []
    deadline = time.monotonic() + STALL_SECONDS
    while len(parts) < count and time.monotonic() < deadline:
        for records in consumer.poll(timeout_ms=1000, max_records=min(count - len(parts), 10_000)).values():
            parts.extend((record.value or NULL) + b"\n" for record in records)
            deadline = time.monotonic() + STALL_SECONDS
    consumer.close()
    return b"".join(parts)


def write_aiokafka(bootstrap: str, topic: str, lines: Path, codec: str) -> None:
    async def write() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap, compression_type=None if codec == "none" else codec, linger_ms=5, acks="all"
        )
        await producer.start()
        try:
            acks = [await producer.send(topic, value) for value in values(lines)]
            await asyncio.wait_for(asyncio.gather(*acks), STALL_SECONDS)
        finally:
            await producer.stop()

    asyncio.run(write())


def read_aiokafka(bootstrap: str, topic: str, count: int) -> bytes:
    async def read() -> bytes:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
        await consumer.start()
        partition = AioTopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        parts: list[bytes] = []
        try:
            while len(parts) < count:
                fetched = await consumer.getmany(timeout_ms=int(STALL_SECONDS * 1000), max_records=count - len(parts))
                if not fetched:
                    break
                for records in fetched.values():
                    parts.extend((record.value or NULL) + b"\n" for record in records)
        finally:
            await consumer.stop()
        return b"".join(parts)

    return asyncio.run(read())


WRITERS = (
    Writer("hmb", write_hmb),
    Writer("confluent-kafka", write_confluent),
    Writer("kafka-python", write_kafka_python),
    Writer("aiokafka", write_aiokafka),
    Writer("kafka-4.3-console", java_clients.write_kafka_43),
    Writer("kafka-0.8.2-console", java_clients.write_kafka_082, OLD_CODECS, magic=0),
    Writer("kafka-0.8.2-new-producer", java_clients.write_kafka_082_new_producer, OLD_CODECS, magic=0),
)
READERS = (
    Reader("hmb", read_hmb),
    Reader("confluent-kafka", read_confluent),
    Reader("kafka-python", read_kafka_python),
    Reader("aiokafka", read_aiokafka, refuses=frozenset({(0, "lz4")})),
    Reader("kafka-4.3-console", java_clients.read_kafka_43),
    Reader("kafka-0.8.2-simple-consumer", java_clients.read_kafka_082),
)
