"""A partition's whole log as an independent client sees it: every record from the log start to the high watermark."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import confluent_kafka

READ_SECONDS = 30.0
NOT_LEADER = confluent_kafka.KafkaError.NOT_LEADER_FOR_PARTITION


class LogRecord(NamedTuple):
    """All that a consumer learns about a record."""

    offset: int
    timestamp: tuple[int, int]  # its type, and ms since 1970
    key: bytes | None
    value: bytes | None
    headers: tuple[Sequence[str | bytes | None], ...]  # name and value


def log_bounds(consumer: confluent_kafka.Consumer, partition: confluent_kafka.TopicPartition) -> tuple[int, int]:
    """Log start offset and high watermark. A Kafka that has just started refuses for a while: it leads nothing yet."""
    deadline = time.monotonic() + READ_SECONDS
    while True:
        try:
            return consumer.get_watermark_offsets(partition, timeout=READ_SECONDS)
        except confluent_kafka.KafkaException as refused:
            if time.monotonic() > deadline or refused.args[0].code() != NOT_LEADER:
                raise
            time.sleep(0.1)


def read_log(bootstrap: str, topic: str) -> list[LogRecord]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "assigned-by-hand", "enable.auto.commit": False, "log_level": 0}
    )
    partition = confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)
    try:
        start, end = log_bounds(consumer, partition)
        consumer.assign([partition])
        records: list[LogRecord] = []
        while start + len(records) < end:  # no transactions and no compaction here: no offset is left out
            missing = end - start - len(records)
            messages = consumer.consume(min(missing, 10_000), timeout=READ_SECONDS)  # waits until it has as many
            assert messages, f"{len(records)} records, and none after them, of a log that ends at {end}"
            for message in messages:
                assert message.error() is None, message.error()
                offset = message.offset()
                assert offset is not None
                headers = tuple(message.headers() or ())
                records.append(LogRecord(offset, message.timestamp(), message.key(), message.value(), headers))
        return records
    finally:
        consumer.close()
