"""Tests that start a broker's storage after a state file was damaged.

The broker rebuilds a damaged state file if it can, and fails with a clear message otherwise.
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import pytest

from hmb.coordinator.producer_ids import ProducerIds
from hmb.protocol.topics import TopicPartition
from hmb.storage.cleanup import deletion
from hmb.storage.config import LogConfig
from hmb.storage.log_manager import LogManager, NewLog
from hmb.storage.state import checkpoints
from hmb.storage.state.identity import DataDirectoryError
from hmb.storage.state.leader_epochs import LeaderEpochs
from hmb.storage.state.manifest import CLEAN_SHUTDOWN, Manifest
from hmb.storage.state.offset_checkpoints import RECOVERY_POINTS, START_OFFSETS
from tests.storage.conftest import batch, delete, read_all

ZERO, ONE = TopicPartition("events", 0), TopicPartition("events", 1)
TOPIC_ID = uuid.uuid4()
JUNK = {
    "empty": b"",
    "zeros": bytes(60),
    "binary": b"\xff\xfe\x80" * 20,
    "text": b"this is not it\n",
    "negative": b"0\n1\nevents 0 -5\n",
}


def opened(directory: Path) -> LogManager:
    logs = LogManager(directory)
    logs.load({}, LogConfig(segment_bytes=300))
    return logs


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a data directory with a topic of two partitions. Its broker was stopped normally."""
    logs = opened(tmp_path)
    for log in logs.create_all([NewLog(name, LogConfig(segment_bytes=300), TOPIC_ID) for name in (ZERO, ONE)]):
        log.epochs = LeaderEpochs([(3, 0)])
        for _ in range(6):
            log.append(batch(2))
    logs.close()
    return tmp_path


def crash(data: Path) -> None:
    (data / CLEAN_SHUTDOWN).unlink()


@pytest.mark.parametrize("junk", JUNK)
@pytest.mark.parametrize("name", [RECOVERY_POINTS, START_OFFSETS])
def test_a_damaged_checkpoint_is_rebuilt(data: Path, name: str, junk: str, caplog: pytest.LogCaptureFixture) -> None:
    (data / name).write_bytes(JUNK[junk])
    crash(data)
    logs = opened(data)
    assert f"{data / name}" in caplog.text
    assert "starts without this checkpoint" in caplog.text
    assert [len(read_all(log)) for _, log in logs.items()] == [12, 12]
    logs.close()
    assert set(checkpoints.read_offsets(data / name)) == {ZERO, ONE}


def test_without_recovery_points_all_is_checked_and_nothing_but_the_end_is_cut(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (data / RECOVERY_POINTS).write_bytes(b"?")
    crash(data)
    path = data / "events-0" / f"{4:020d}.log"
    damaged = bytearray(path.read_bytes())
    damaged[70] ^= 1
    path.write_bytes(damaged)
    (_, log), _ = opened(data).items()
    assert f"{path}, position 0" in caplog.text
    (kept,) = path.parent.glob("*.cut")
    assert damaged.startswith(kept.read_bytes())
    assert [record.offset for record in read_all(log)] == [0, 1, 2, 3, 6, 7, 8, 9, 10, 11]


@pytest.mark.parametrize("junk", JUNK)
def test_a_damaged_leader_epoch_is_restored_from_the_batches(data: Path, junk: str) -> None:
    path = data / "events-0" / "leader-epoch-checkpoint"
    path.write_bytes(JUNK[junk])
    (_, log), _ = opened(data).items()
    assert log.leader_epoch == 3
    assert checkpoints.read_leader_epochs(path.parent).newest == 3


@pytest.mark.parametrize("junk", [*JUNK, "missing"])
@pytest.mark.parametrize("partition", [0, 1])
def test_a_damaged_topic_id_is_restored_from_another_partition(data: Path, partition: int, junk: str) -> None:
    path = data / f"events-{partition}" / "partition.metadata"
    if junk == "missing":
        path.unlink()
    else:
        path.write_bytes(JUNK[junk])
    assert opened(data).topic_ids() == {"events": TOPIC_ID}
    assert checkpoints.read_topic_id(path.parent) == TOPIC_ID


@pytest.mark.parametrize("junk", JUNK)
def test_a_damaged_identity_is_refused(data: Path, junk: str) -> None:
    (data / "meta.properties").write_bytes(JUNK[junk])
    # When the first attempt fails, it releases the lock of the data directory. Otherwise the second attempt would fail
    # because of the lock, and not because of the damaged file.
    for _ in range(2):
        with pytest.raises(DataDirectoryError, match=r"meta\.properties.*Put the file back"):
            LogManager(data)


@pytest.mark.parametrize("junk", ["empty", "zeros", "binary", "text"])
def test_new_producer_ids_are_greater_than_all_assigned_ones(
    tmp_path: Path, junk: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "producer-ids"
    path.write_bytes(JUNK[junk])
    assert ProducerIds(path, Manifest(tmp_path)).allocate() > 10**12
    assert str(path) in caplog.text
    assert ProducerIds(path, Manifest(tmp_path)).allocate() > 10**12


def test_a_checkpoint_of_a_deleted_topic_is_not_used_for_a_new_one(data: Path) -> None:
    logs = opened(data)
    deletion.delete_records(dict(logs.items())[ZERO], 8)
    logs.write_checkpoints()
    delete(logs, ZERO)
    log = logs.create(ZERO, LogConfig(), uuid.uuid4())
    for _ in range(2):
        log.append(batch(2))
    killed = data.with_name("killed")
    shutil.copytree(data, killed)
    (_, log), _ = opened(killed).items()
    assert [record.offset for record in read_all(log)] == [0, 1, 2, 3]


def test_other_things_in_a_data_directory_are_left_alone(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    (data / "other-0").write_text("a file")
    (data / "notes-\N{SUPERSCRIPT TWO}").mkdir()
    (data / "events-007").mkdir()
    (data / "lost+found").mkdir()
    (data / "trash-delete").write_text("a file")
    names = {path.name for path in data.iterdir()}
    assert [name for name, _ in opened(data).items()] == [ZERO, ONE]
    assert names - {path.name for path in data.iterdir()} == {CLEAN_SHUTDOWN}
    assert "other-0 is not a directory" in caplog.text


def test_a_log_that_cannot_be_read_is_named(data: Path) -> None:
    path = data / "events-1" / f"{0:020d}.log"
    path.unlink()
    path.mkdir()
    with pytest.raises(DataDirectoryError, match=f"{path}.*nothing was deleted"):
        opened(data)


@pytest.mark.parametrize("taken", ["a file", "read-only"])
def test_a_directory_that_cannot_be_written_is_refused(
    tmp_path: Path, taken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "data"
    if taken == "a file":
        directory.write_text("")
    else:  # File permissions do not stop the user root, so the test makes `os.open` fail.

        def refuse(path: Path, flags: int, mode: int = 0) -> int:
            raise PermissionError(30, "Read-only file system", str(path))

        monkeypatch.setattr("hmb.storage.state.directory_lock.os.open", refuse)
    with pytest.raises(DataDirectoryError, match="choose another"):
        LogManager(directory)
