"""Tests of `hmb backup` and `hmb restore`: a backup of one broker, restored into another broker."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hmb
from hmb.cli.backup import writing
from hmb.cli.backup.contents import CONTENTS
from tests.cli.conftest import Hmb, start
from tests.waiting import until

QUICK = {"log.flush.acks.all": "false", "group.initial.rebalance.delay.ms": "0"}
SEGMENT = "gaps-0/00000000000000000000.log"


@pytest.fixture(scope="module")
def source() -> Iterator[str]:
    """A broker with three topics: `plain` has no gaps, `gaps` has transactions, and `stamped` has log append times."""
    with hmb.Broker(config=QUICK) as broker:
        broker.create_topic("plain", partitions=2, config={"retention.ms": "123456789", "cleanup.policy": "compact"})
        broker.create_topic("gaps")
        broker.create_topic("stamped", config={"message.timestamp.type": "LogAppendTime"})
        for codec in ("none", "gzip", "zstd"):
            with hmb.Producer(broker.bootstrap_servers, compression=codec) as producer:
                for topic in ("plain", "stamped"):
                    for number in range(10):
                        key, value = b"%d" % number, f"{codec} {number}".encode()
                        producer.send(topic, value, key=key, headers=[("h", b"\x00")], timestamp=1000 + number)
        with hmb.Producer(broker.bootstrap_servers, transactional_id="t") as producer:
            producer.init_transactions()
            for last in ("commit", "abort", "commit"):
                producer.begin_transaction()
                for number in range(3):
                    producer.send("gaps", f"{last} {number}".encode())
                producer.flush()
                getattr(producer, f"{last}_transaction")()
        with hmb.Admin(broker.bootstrap_servers) as admin:
            admin.delete_records({hmb.TopicPartition("gaps", 0): 1})
            offsets = {hmb.TopicPartition("gaps", 0): 9, hmb.TopicPartition("plain", 1): 4}
            admin.alter_group_offsets("readers", offsets)
            start_offsets = {hmb.TopicPartition("gaps", 0): 8, hmb.TopicPartition("plain", 1): 2}
            admin.alter_share_offsets("workers", start_offsets)
        yield broker.bootstrap_servers


@pytest.fixture
def target() -> Iterator[str]:
    with hmb.Broker(config=QUICK) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def backup(run: Hmb, source: str, tmp_path: Path) -> Path:
    run("backup", str(tmp_path / "backup"), "-b", source)
    return tmp_path / "backup"


def records(run: Hmb, topic: str, servers: str) -> list[dict[str, Any]]:
    printed = run("consume", topic, "-e", "--json", "-X", "isolation.level=read_committed", "-b", servers).stdout
    found = [json.loads(line) for line in printed.splitlines()]
    return sorted(found, key=lambda record: (record["partition"], record["offset"]))


def committed(servers: str) -> dict[str, int]:
    with hmb.Admin(servers) as admin:
        return {str(it): found.offset for it, found in admin.list_group_offsets("readers").items()}


def started(servers: str) -> dict[str, int | None]:
    """Return the start offsets of the share group, by partition."""
    with hmb.Admin(servers) as admin:
        return {str(it): found.start_offset for it, found in admin.list_share_offsets("workers").items()}


@pytest.mark.parametrize("name", ["backup", "backup.tar"])
def test_a_restored_broker_has_the_same_records_settings_and_group_offsets(
    run: Hmb, source: str, target: str, tmp_path: Path, name: str
) -> None:
    path = str(tmp_path / name)
    saved = [json.loads(line) for line in run("backup", path, "--json", "-b", source).stdout.splitlines()]
    assert [(row["topic"], row["partition"], row["log_start_offset"]) for row in saved] == [
        ("gaps", 0, 1), ("plain", 0, 0), ("plain", 1, 0), ("stamped", 0, 0)
    ]  # fmt: skip
    assert [each.name for each in tmp_path.iterdir()] == [name]
    (verified,) = (json.loads(line) for line in run("backup", path, "--verify", "--json").stdout.splitlines())
    assert (verified["topics"], verified["files"]) == (3, 5)
    restored = [json.loads(line) for line in run("restore", path, "--json", "-b", target).stdout.splitlines()]
    assert [(row["topic"], row["offsets"]) for row in restored] == [
        ("gaps", "translated"), ("plain", "kept"), ("plain", "kept"), ("stamped", "kept")
    ]  # fmt: skip
    assert records(run, "plain", target) == records(run, "plain", source)
    unstamped = [record | {"timestamp_type": "CreateTime"} for record in records(run, "stamped", source)]
    assert records(run, "stamped", target) == unstamped
    before, after = records(run, "gaps", source), records(run, "gaps", target)
    assert [record["offset"] for record in before] == [1, 2, 8, 9, 10]
    assert after == [record | {"offset": offset} for offset, record in enumerate(before)]
    assert committed(target) == {"gaps-0": 3, "plain-1": 4}
    assert started(target) == {"gaps-0": 2, "plain-1": 2}
    for topic in ("plain", "gaps", "stamped"):
        described = [json.loads(run("topics", "describe", topic, "--json", "-b", it).stdout) for it in (source, target)]
        assert described[0]["configs"] == described[1]["configs"]
        assert described[0]["partition_count"] == described[1]["partition_count"]


def test_a_broker_that_starts_with_a_copy_of_a_backup_has_every_record_at_its_offset(
    run: Hmb, source: str, backup: Path, tmp_path: Path
) -> None:
    shutil.copytree(backup, tmp_path / "data")
    with hmb.Broker(data_dir=tmp_path / "data", config=QUICK) as broker:
        for topic in ("plain", "stamped"):
            assert records(run, topic, broker.bootstrap_servers) == records(run, topic, source)
        found = [record["offset"] for record in records(run, "gaps", broker.bootstrap_servers)]
        assert found == [0, 1, 2, 8, 9, 10]


def test_only_some_topics_are_saved_and_restored(run: Hmb, source: str, target: str, tmp_path: Path) -> None:
    path = str(tmp_path / "two.tar")
    run("backup", path, "--pattern", "(plain|gaps)", "-b", source)
    assert "no topic 'stamped'" in run("restore", path, "stamped", "-b", target, exit_code=3).stderr
    run("restore", path, "plain", "-b", target)
    assert run("topics", "list", "-b", target).stdout.split() == ["plain"]
    assert committed(target) == {"plain-1": 4}
    assert started(target) == {"plain-1": 2}
    assert "leave out the topics" in run("backup", path, "plain", "--verify", exit_code=2).stderr
    assert "no topic matches" in run("backup", path + "2", "--pattern", "none.*", "-b", source, exit_code=3).stderr


def test_records_of_an_open_transaction_are_not_in_a_backup(
    run: Hmb, target: str, tmp_path: Path
) -> None:
    with hmb.Producer(target, transactional_id="open") as producer:
        producer.init_transactions()
        with hmb.Producer(target) as other:
            other.send("t", b"before")
        producer.begin_transaction()
        producer.send("t", b"open")
        producer.flush()
        (row,) = run("backup", str(tmp_path / "b"), "--json", "-b", target).stdout.splitlines()
        assert json.loads(row)["log_end_offset"] == 1
        producer.abort_transaction()
    run("backup", str(tmp_path / "b"), "--verify")


def damaged(backup: Path, name: str, change: str) -> None:
    path = backup / name
    data = bytearray(path.read_bytes())
    if change == "missing":
        path.unlink()
    elif change == "cut":
        path.write_bytes(data[:-1])
    elif change == "added":
        (backup / "gaps-0/00000000000000000099.log").write_bytes(b"")
    else:
        data[len(data) // 2] ^= 1
        path.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "change", "complaint"),
    [
        (SEGMENT, "flipped", f"the SHA-256 checksum of {SEGMENT} is"),
        (SEGMENT, "cut", f"the SHA-256 checksum of {SEGMENT} is"),
        (SEGMENT, "missing", f"{SEGMENT} is missing"),
        (SEGMENT, "added", "00000000000000000099.log has no checksum"),
        (CONTENTS, "flipped", f"the SHA-256 checksum of {CONTENTS} is"),
        (CONTENTS, "missing", f"{CONTENTS} is missing"),
        (writing.CHECKSUMS, "missing", "a backup that was interrupted"),
    ],
)
def test_damage_is_reported_and_nothing_is_restored(
    run: Hmb, backup: Path, target: str, name: str, change: str, complaint: str
) -> None:
    damaged(backup, name, change)
    assert complaint in run("backup", str(backup), "--verify", exit_code=5).stderr
    assert complaint in run("restore", str(backup), "-b", target, exit_code=5).stderr
    assert run("topics", "list", "-b", target).stdout == ""


def test_a_cut_tar_file_and_a_wrong_path_are_reported(run: Hmb, source: str, tmp_path: Path) -> None:
    whole = tmp_path / "whole.tar"
    run("backup", str(whole), "gaps", "-b", source)
    data = whole.read_bytes()
    for size in range(0, len(data) - 10240, 512):
        cut = tmp_path / "cut.tar"
        cut.write_bytes(data[:size])
        assert str(cut) in run("backup", str(cut), "--verify", exit_code=5).stderr
    assert "no such backup" in run("restore", str(tmp_path / "nothing"), exit_code=3).stderr


def test_an_existing_path_and_an_interrupted_backup_are_never_overwritten(
    run: Hmb, source: str, backup: Path, tmp_path: Path
) -> None:
    assert "choose another path" in run("backup", str(backup), "-b", source, exit_code=1).stderr
    (tmp_path / "new.incomplete").mkdir()
    assert "was interrupted" in run("backup", str(tmp_path / "new"), "-b", source, exit_code=1).stderr
    assert "was interrupted" in run("restore", str(tmp_path / "new.incomplete"), exit_code=5).stderr


@pytest.mark.parametrize("name", ["backup", "backup.tar"])
def test_a_full_disk_leaves_nothing_behind(
    run: Hmb, source: str, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: writing.NewFile, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(writing.NewFile, "write", full)
    error = run("backup", str(tmp_path / name), "-b", source, exit_code=1).stderr
    assert error == f"hmb: {tmp_path / name}: cannot write the backup: No space left on device\n"
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_backup_is_deleted_and_a_killed_one_is_recognized(run: Hmb, tmp_path: Path) -> None:
    with hmb.Broker(config=QUICK) as broker:
        broker.produce("t", b"value")
        broker.faults.add("FETCH", delay=300)
        for number, name in ((signal.SIGTERM, "interrupted"), (signal.SIGKILL, "killed")):
            path, incomplete = tmp_path / name, tmp_path / f"{name}.incomplete"
            process = start("backup", str(path), "-b", broker.bootstrap_servers)
            until(incomplete.exists, "the new directory")
            process.send_signal(number)
            process.communicate(timeout=60)
            assert not path.exists()
            assert incomplete.exists() == (number == signal.SIGKILL)
    assert "was interrupted" in run("restore", str(tmp_path / "killed.incomplete"), exit_code=5).stderr


def test_a_target_with_the_topic_or_an_active_group_is_refused(
    run: Hmb, backup: Path, target: str
) -> None:
    with hmb.Admin(target) as admin:
        admin.create_topics(["other", "gaps"])
        error = run("restore", str(backup), "-b", target, exit_code=1).stderr
        assert error.startswith("hmb: the target already has gaps; ")
        admin.delete_topics(["gaps"])
        with hmb.Consumer(target, "other", group="readers") as consumer:
            until(lambda: not consumer.poll(0.1) and consumer.assignment, "an assignment")
            assert "'readers' has members" in run("restore", str(backup), "-b", target, exit_code=1).stderr
        assert [topic.name for topic in admin.list_topics()] == ["other"]


def test_a_restore_that_fails_names_the_incomplete_topics(run: Hmb, backup: Path) -> None:
    with hmb.Broker(config=QUICK | {"message.max.bytes": "100"}) as small:
        error = run("restore", str(backup), "-b", small.bootstrap_servers, exit_code=1).stderr
    assert "run `hmb topics delete gaps plain stamped`, and then restore again" in error
