"""Tests of a broker on a full disk. It still serves fetches, commits and deletions, and producers continue later.

The disk is a small file system in memory, which only the broker's process sees. The test accesses it through `/proc`.
"""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hmb.client import Admin, Consumer, Producer, TopicPartition
from hmb.client.admin import ConfigResource, CreatedTopic, NewTopic, ResourceType
from hmb.client.errors import KafkaError
from hmb.protocol.errors import ErrorCode
from hmb.storage.state.checkpoints import read_offsets
from tests.waiting import until

DISK = 24 << 20  # bytes; the broker's reserve is 1/64 of the disk
ON_SMALL_DISK = ["unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size={DISK} tmpfs "$0" && exec "$@"']
BROKER = [str(Path(sys.executable).with_name("hmb")), "broker", "--port", "0", "--json"]
SETTINGS = ["-X", "log.segment.bytes=100000", "-X", "group.initial.rebalance.delay.ms=0"]
SETTINGS += ["-X", "offsets.topic.num.partitions=1", "-X", "log.flush.scheduler.interval.ms=200"]
PARTITION = TopicPartition("events", 0)
RECORDS = 50
SIZE = 30_000  # bytes of a record: three records fit into a segment


@dataclass
class SmallDisk:
    """A broker with a small disk."""

    process: subprocess.Popen[str]
    servers: str
    directory: Path  # the path through which the test sees the disk

    def fill(self) -> None:
        """Write a file until the disk is full."""
        with (self.directory / "filler").open("ab", buffering=0) as filler, pytest.raises(OSError) as error:
            while True:
                filler.write(bytes(1 << 16))
        assert error.value.errno == errno.ENOSPC

    def free(self) -> None:
        (self.directory / "filler").unlink()

    def produce(self, size: int = SIZE, topic: str = "events") -> ErrorCode | int:
        """Produce one record. Return its offset, or the error code."""
        with Producer(self.servers, acks=1, linger_ms=0, delivery_timeout=0.5, idempotence=False) as producer:
            try:
                return producer.send(topic, bytes(size)).result(30).offset
            except KafkaError as error:
                return error.code

    def use_up_the_reserve(self) -> None:
        """Fill the disk until the broker releases its reserve. Then fill this space, too."""
        self.fill()
        assert self.produce() is ErrorCode.KAFKA_STORAGE_ERROR
        assert not (self.directory / ".reserve").exists()
        self.fill()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    data = tmp_path / "data"
    data.mkdir()
    if subprocess.run([*ON_SMALL_DISK, str(data), "true"], capture_output=True).returncode:
        pytest.skip("this machine lets no process mount a disk of its own")
    command = [*ON_SMALL_DISK, str(data), *BROKER, "--data-dir", str(data), *SETTINGS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        servers = json.loads(process.stdout.readline())["bootstrap_servers"]
        broker = SmallDisk(process, servers, Path(f"/proc/{process.pid}/root{data}"))
        with Admin(servers) as admin, Producer(servers, acks=1, linger_ms=0) as producer:
            create(admin, NewTopic("events", 1), NewTopic("other", 2))
            for number in range(RECORDS):
                assert producer.send("events", bytes(SIZE)).result(30).offset == number
        yield broker
        process.terminate()
        errors = process.communicate(timeout=30)[1]
        assert "Traceback" not in errors
        assert process.returncode == 0


def create(admin: Admin, *topics: NewTopic) -> None:
    assert all(isinstance(made, CreatedTopic) for made in admin.create_topics(topics).values())


def commit(admin: Admin, group: str, offset: int) -> None:
    assert admin.alter_group_offsets(group, {PARTITION: offset}) == {PARTITION: None}
    assert admin.list_group_offsets(group)[PARTITION].offset == offset


def read(servers: str) -> list[int]:
    with Consumer(servers, "events", until="end") as consumer:
        return [record.offset for record in consumer]


@pytest.mark.external
def test_only_producing_fails_on_a_full_disk_and_continues_without_a_restart(
    small_disk: SmallDisk,
) -> None:
    servers = small_disk.servers
    with Admin(servers) as admin:
        commit(admin, "g", 3)
    small_disk.fill()
    assert small_disk.produce() is ErrorCode.KAFKA_STORAGE_ERROR
    # A record of one byte would still fit, but the broker refuses all records until the disk has more free space.
    assert small_disk.produce(1) is ErrorCode.KAFKA_STORAGE_ERROR
    assert read(servers) == list(range(RECORDS))
    with Admin(servers) as admin:
        for offset in range(4, RECORDS):
            commit(admin, f"g{offset % 3}", offset)
        assert admin.delete_records({PARTITION: 12}) == {PARTITION: 12}
        assert admin.delete_topics(["other"]) == {"other": None}
    assert read(servers) == list(range(12, RECORDS))
    small_disk.free()
    until(lambda: small_disk.produce(1) == RECORDS, "the broker takes records again", seconds=20)
    assert (small_disk.directory / ".reserve").exists()


@pytest.mark.external
def test_a_topic_can_be_deleted_on_a_full_disk(small_disk: SmallDisk) -> None:
    """A topic can be deleted on a full disk.

    Before a bug was fixed, the broker had to write topics.json before the deletion. This failed, although only the
    deletion would have freed space.
    """
    small_disk.use_up_the_reserve()
    with Admin(small_disk.servers) as admin:
        assert admin.delete_topics(["events", "other"]) == {"events": None, "other": None}
    assert {path.name for path in small_disk.directory.glob("*-[0-9]*")} == set()
    assert json.loads((small_disk.directory / "topics.json").read_text()) == {}
    with Admin(small_disk.servers) as admin:
        until(lambda: small_disk.produce(topic="new") == 0, "the broker takes records again", seconds=20)
        assert [topic.name for topic in admin.list_topics()] == ["new"]


@pytest.mark.external
def test_records_are_deleted_on_a_full_disk(small_disk: SmallDisk) -> None:
    small_disk.use_up_the_reserve()
    before = sum(path.stat().st_size for path in (small_disk.directory / "events-0").iterdir())
    with Admin(small_disk.servers) as admin:
        assert admin.delete_records({PARTITION: 30}) == {PARTITION: 30}
    starts = read_offsets(small_disk.directory / "log-start-offset-checkpoint")
    assert starts[PARTITION] == 30
    assert read(small_disk.servers) == list(range(30, RECORDS))
    assert sum(path.stat().st_size for path in (small_disk.directory / "events-0").iterdir()) < before / 2


@pytest.mark.external
def test_records_stay_if_the_new_start_offset_cannot_be_stored(small_disk: SmallDisk) -> None:
    """If the broker cannot store the new log start offset, DeleteRecords has no effect.

    The test asks the broker to delete the records at offsets 0 and 1. The first segment also contains offset 2, so the
    broker deletes no segment, and the full disk has no space for the new log start offset. Before a bug was fixed, the
    log start offset changed in memory, although the response was an error.
    """
    small_disk.use_up_the_reserve()
    with Admin(small_disk.servers) as admin:
        (answer,) = admin.delete_records({PARTITION: 2}).values()
        assert isinstance(answer, KafkaError) and answer.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert read(small_disk.servers) == list(range(RECORDS))
        small_disk.free()
        assert admin.delete_records({PARTITION: 2}) == {PARTITION: 2}
    assert read(small_disk.servers) == list(range(2, RECORDS))


@pytest.mark.external
def test_retention_makes_room_on_a_full_disk(small_disk: SmallDisk) -> None:
    small_disk.use_up_the_reserve()
    with Admin(small_disk.servers) as admin:
        # The deletion frees a few blocks, which the settings need.
        assert admin.delete_topics(["other"]) == {"other": None}
        admin.alter_configs(ConfigResource(ResourceType.TOPIC, "events"), set={"retention.ms": "1"})
    until(lambda: small_disk.produce() == RECORDS, "the broker takes records again", seconds=30)
    assert read(small_disk.servers) == [RECORDS]
