"""Reads a partition's whole log with an independent client, from the log start offset to the end of the log."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import confluent_kafka

READ_SECONDS = 60.0
LOOK_SECONDS = 0.05  # the time that `consume` waits at the end of the log
END = confluent_kafka.KafkaError._PARTITION_EOF


class LogRecord(NamedTuple):
    """All fields of a record that a consumer returns."""

    offset: int
    timestamp: tuple[int, int]  # (timestamp type, ms since 1970)
    key: bytes | None
    value: bytes | None
    headers: tuple[Sequence[str | bytes | None], ...]  # (name, value) of each header


def read_log(
    bootstrap: str, topic: str, isolation_level: str = "read_uncommitted", partition: int = 0
) -> list[LogRecord]:
    """Read up to the high watermark, or up to the last stable offset if `read_committed` is true."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "assigned-by-hand",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation_level,
            "log_level": 0,
        }
    )
    records: list[LogRecord] = []
    deadline = time.monotonic() + READ_SECONDS
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, partition, confluent_kafka.OFFSET_BEGINNING)])
        while True:
            for message in consumer.consume(10_000, timeout=LOOK_SECONDS):
                error, offset = message.error(), message.offset()
                if error is not None and error.code() == END:
                    return records
                assert error is None and offset is not None, error
                headers = tuple(message.headers() or ())
                records.append(LogRecord(offset, message.timestamp(), message.key(), message.value(), headers))
                deadline = time.monotonic() + READ_SECONDS
            assert time.monotonic() < deadline, f"{len(records)} records of {topic}, and then neither more nor the end"
    finally:
        consumer.close()
