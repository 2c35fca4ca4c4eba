"""Tests of a new broker process that opens an existing data directory. HMB or Kafka 4.3.0 has written the directory."""

from __future__ import annotations

import time
from pathlib import Path

import confluent_kafka
import pytest

from hmb.bench import peers
from tests.conformance.clients import ALL_CODECS, write_confluent, write_kafka_python
from tests.conformance.dataset import write_lines
from tests.conformance.whole_log import LogRecord, read_log

pytestmark = pytest.mark.external

RECORDS = 12_000  # about 1.5 MB for each topic, so more than one segment of 1 MiB
HEADERS: list[tuple[str, str | bytes | None]] = [("first", b"\x00\xff"), ("empty", b""), ("null", None)]
SMALL_SEGMENTS = {"log.segment.bytes": "1048576"}


def write_every_kind_of_record(bootstrap: str, topic: str) -> None:
    """Write keys, tombstones, headers and explicit timestamps. Each batch contains one record."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    an_hour_ago = int(time.time() * 1000) - 3_600_000
    for number in range(20):
        key = None if number % 3 == 0 else b"key %d" % number
        value = None if number % 4 == 3 else b"value %d" % number
        producer.produce(topic, value, key, headers=HEADERS[: number % 4], timestamp=an_hour_ago + number)
        assert producer.flush(30) == 0


def fill(bootstrap: str, folder: Path) -> dict[str, list[LogRecord]]:
    """Fill one topic for each codec, one topic through kafka-python, and one topic with every kind of record.

    Return the records of each topic's log.
    """
    lines = write_lines(folder / "lines", RECORDS)
    for codec in ALL_CODECS:
        write_confluent(bootstrap, f"idempotent-{codec}", lines, codec)
    write_kafka_python(bootstrap, "plain-none", lines, "none")
    write_every_kind_of_record(bootstrap, "kinds")
    topics = [*(f"idempotent-{codec}" for codec in ALL_CODECS), "plain-none", "kinds"]
    return {topic: read_log(bootstrap, topic) for topic in topics}


def assert_same(bootstrap: str, logs: dict[str, list[LogRecord]]) -> None:
    for topic, records in logs.items():
        assert read_log(bootstrap, topic) == records, topic


def test_hmb_opens_its_own_directory_after_a_clean_stop(tmp_path: Path) -> None:
    with peers.Hmb(tmp_path / "hmb", config=SMALL_SEGMENTS) as broker:
        logs = fill(broker.bootstrap, tmp_path)
        assert broker.stop() == 0
        broker.start()
        assert_same(broker.bootstrap, logs)


def test_hmb_opens_a_directory_that_kafka_wrote(kafka_43: Path, tmp_path: Path) -> None:
    directory = tmp_path / "kafka"
    with peers.Kafka43(directory, config=SMALL_SEGMENTS) as kafka:
        logs = fill(kafka.bootstrap, tmp_path)
    assert len(list((directory / "data" / "plain-none-0").glob("*.log"))) > 1
    with peers.Hmb(directory, config=SMALL_SEGMENTS) as broker:
        assert_same(broker.bootstrap, logs)
        write_every_kind_of_record(broker.bootstrap, "kinds")
        assert [record.offset for record in read_log(broker.bootstrap, "kinds")] == list(range(40))
