"""Tests topics with their own settings. HMB must store the records that Kafka 4.3.0 stores, and refuse the others.

Both brokers receive the same batches, for example:

- batches with timestamps that are too old, or too far in the future
- batches with records that have no key
- batches whose codec differs from the codec of the topic
- batches in which the broker replaces the timestamps

Both brokers must send the same responses. Then a fetch must return the same records from both brokers.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hmb.bench import peers
from hmb.bench.peers import HOST
from hmb.client import Connection
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.fetch import FetchRequest
from hmb.protocol.messages.produce import ProduceRequest
from hmb.records import Codec, Record, RecordBatch, encode_batch, iter_batches
from hmb.storage.config import CODECS, LogConfig
from hmb.storage.log import Log
from hmb.units import HOUR_MS
from tests.conformance.java_clients import dump_logs
from tests.storage.conftest import read_all

pytestmark = pytest.mark.external

NOW = int(time.time() * 1000)
FAR, OLD = NOW + 3 * HOUR_MS, NOW - 3 * HOUR_MS
NOT_READY = (3, 5, 6)  # error codes of a new partition until Kafka has elected its leader
FIRST_SEGMENT = f"{0:020d}.log"
TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "compacted": {"cleanup.policy": "compact"},
    "young": {"message.timestamp.before.max.ms": str(HOUR_MS)},
    "free": {"message.timestamp.after.max.ms": str(2**62)},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "stamped-zstd": {"message.timestamp.type": "LogAppendTime", "compression.type": "zstd"},
    "levels": {"compression.type": "lz4", "compression.lz4.level": "17"},
    "small": {"compression.type": "uncompressed", "max.message.bytes": "1000"},
    "preallocated": {"preallocate": "true", "segment.bytes": str(1 << 20)},
    **{f"kept-{name}": {"compression.type": name} for name in CODECS},
}


def at(*timestamps: int, key: bytes | None = b"k") -> list[Record]:
    return [Record(0, timestamp, key, b"value", (("h", b"1"),)) for timestamp in timestamps]


def batches() -> Iterator[tuple[str, bytes]]:
    """Yield each batch of the test, and the topic that gets the batch."""
    for codec in Codec:
        yield "plain", encode_batch(at(NOW, FAR, -1, NOW + HOUR_MS - 60_000, FAR), codec=codec)
        yield "plain", encode_batch(at(NOW, 0, -1), codec=codec)
        yield "compacted", encode_batch([*at(NOW), *at(NOW, FAR, key=None), *at(FAR, NOW)], codec=codec)
        yield "compacted", encode_batch([*at(NOW), *at(NOW, OLD, key=None)], codec=codec)
        yield "young", encode_batch(at(NOW, OLD, -1, NOW, OLD), codec=codec)
        yield "young", encode_batch(at(NOW, -1), codec=codec)
        yield "free", encode_batch(at(NOW, 2**61), codec=codec)
        yield "stamped", encode_batch(at(OLD, FAR, -1), codec=codec)
        yield "stamped-zstd", encode_batch(at(OLD, FAR, -1), codec=codec)
        yield "levels", encode_batch(at(*[NOW] * 200), codec=codec)
        yield "small", encode_batch(at(*[NOW] * 200), codec=codec)
        yield "preallocated", encode_batch(at(NOW, NOW), codec=codec)
        for name in CODECS:
            producer = {"producer_id": 1000, "producer_epoch": 3, "base_sequence": 3 * codec}
            yield f"kept-{name}", encode_batch(at(NOW, NOW - 9, NOW + 9), codec=codec, **producer)


def create(connection: Connection) -> None:
    new = CreateTopicsRequest.CreatableTopic
    topics = [
        new(
            name=name,
            num_partitions=1,
            replication_factor=1,
            configs=[new.CreatableTopicConfig(name=setting, value=value) for setting, value in configs.items()],
        )
        for name, configs in TOPICS.items()
    ]
    response = connection.send(CreateTopicsRequest(topics=topics, timeout_ms=10_000))
    assert [topic.error_code for topic in response.topics] == [0] * len(TOPICS)


def produced(connection: Connection, topic: str, data: bytes) -> dict[str, Any]:
    to = ProduceRequest.TopicProduceData
    parts = [to.PartitionProduceData(index=0, records=memoryview(data))]
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[to(name=topic, partition_data=parts)])
    deadline = time.monotonic() + 30
    answer = connection.send(request, version=9).responses[0].partition_responses[0]
    while answer.error_code in NOT_READY and time.monotonic() < deadline:
        answer = connection.send(request, version=9).responses[0].partition_responses[0]
    return {
        "error": answer.error_code,
        "message": answer.error_message if answer.error_code == 32 else None,
        "records": {each.batch_index: _without_limits(each.batch_index_error_message) for each in answer.record_errors},
        "base offset": answer.base_offset,
        "stamped": answer.log_append_time_ms > 0,
    }


def _without_limits(message: str) -> str:
    """Return an error message without its time limits, because they depend on the current time.

    For a missing key, HMB and Kafka have different messages. This function replaces both messages by "no key".
    """
    return "no key" if "key" in message else re.sub(r"\[-?\d+, -?\d+\]", "[limits]", message)


def kept(connection: Connection, topic: str) -> list[tuple[object, ...]]:
    wanted = FetchRequest.FetchTopic
    parts = [wanted.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 24)]
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=1 << 24, topics=[wanted(topic=topic, partitions=parts)]
    )
    partition = connection.send(request, version=11).responses[0].partitions[0]
    assert partition.error_code == 0
    found: list[tuple[object, ...]] = []
    for batch in iter_batches(partition.records):
        assert isinstance(batch, RecordBatch)
        batch.check()
        stamped = batch.timestamp_type.label
        ids = batch.producer_id, batch.producer_epoch, batch.base_sequence
        times = [record.timestamp if stamped == "CreateTime" else 0 for record in batch.records()]
        records = [(record.offset, record.key, record.value, record.headers) for record in batch.records()]
        newest = batch.max_timestamp if stamped == "CreateTime" else 0
        found.append((batch.base_offset, batch.last_offset, batch.codec, *ids, stamped, newest, times, records))
    return found


def test_kafka_and_hmb_store_and_refuse_the_same_records(
    kafka_43: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answers: list[list[tuple[str, object]]] = []
    data_dirs: list[Path] = []
    for broker in (peers.Hmb(tmp_path / "hmb"), peers.Kafka43(tmp_path / "kafka")):
        with broker, Connection(HOST, broker.port) as connection:
            create(connection)
            answers.append([(topic, produced(connection, topic, data)) for topic, data in batches()])
            answers[-1] += [(topic, kept(connection, topic)) for topic in TOPICS]
            data_dirs.append(broker.data_dir)
            broker.kill()
    for ours, kafkas in zip(*answers, strict=True):
        assert ours == kafkas
    kafka_reads(data_dirs[0])
    for data_dir in data_dirs:
        recover_preallocated(data_dir / "preallocated-0")
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def kafka_reads(data_dir: Path) -> None:
    """Check that Kafka reads the batches that HMB has compressed again."""
    files = {name: data_dir / f"kept-{name}-0" / FIRST_SEGMENT for name in CODECS}
    dumps = dump_logs(list(files.values()))
    for name, file in files.items():
        assert dumps[file].complaints == []
        assert set(dumps[file].codecs) == {"none" if name == "uncompressed" else name}
        assert dumps[file].offsets == list(range(3 * len(Codec)))


def recover_preallocated(directory: Path) -> None:
    """Check that HMB recovers the preallocated file of a killed broker. This broker was HMB or Kafka."""
    file = directory / FIRST_SEGMENT
    assert file.stat().st_size == 1 << 20
    log = Log(directory, LogConfig(preallocate=True, segment_bytes=1 << 20))
    assert [record.offset for record in read_all(log)] == list(range(2 * len(Codec)))
    assert file.stat().st_size == log.size < 1_000
    assert dump_logs([file])[file].complaints == []
