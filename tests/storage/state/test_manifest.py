"""Tests of the manifest (state/manifest.py): when the broker starts, it notices each file that somebody has changed."""

from __future__ import annotations

import logging
import os
import re
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hmb.protocol.topics import TopicPartition
from hmb.storage.cleanup import deletion
from hmb.storage.compaction.cleaner import Cleaner
from hmb.storage.config import LogConfig
from hmb.storage.log import Log
from hmb.storage.state import manifest
from hmb.storage.state.checkpoints import TOPIC_ID
from hmb.storage.state.identity import DataDirectoryError
from hmb.storage.state.manifest import CLEAN_SHUTDOWN, Manifest, SegmentEntry
from hmb.storage.state.offset_checkpoints import RECOVERY_POINTS, START_OFFSETS
from hmb.units import now_ms
from tests.storage.compaction.test_compaction import change_batch, table
from tests.storage.conftest import batch, read_all
from tests.storage.data_directory import NAME, DataDirectory
from tests.storage.transactions import ABORT, COMMIT, Writer, committed_offsets

CONFIG = LogConfig(segment_bytes=4 * batch(2).size, index_interval_bytes=100)
COMPACTED = LogConfig(segment_bytes=400, cleanup_policy="compact", min_cleanable_dirty_ratio=0.01)


@pytest.fixture
def data(tmp_path: Path) -> DataDirectory:
    return DataDirectory(tmp_path / "data", CONFIG)


def fill(log: Log, batches: int = 10) -> Log:
    """Append `batches` batches of two records. Each segment has four batches."""
    for _ in range(batches):
        log.append(batch(2))
    log.flush()
    return log


def reports(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno > logging.INFO]


def offsets(log: Log) -> list[int]:
    return [record.offset for record in read_all(log)]


def compact(data: DataDirectory) -> None:
    assert data.logs is not None
    Cleaner(data.logs, max_memory=1 << 20, rate=float("inf"), stop=threading.Event()).run()


# -- changes that a start must not report


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("config", [CONFIG, COMPACTED, LogConfig(segment_bytes=400, preallocate=True)])
def test_nothing_is_reported_of_files_that_nobody_changed(
    data: DataDirectory, caplog: pytest.LogCaptureFixture, config: LogConfig, clean: bool
) -> None:
    """If nobody has changed the files, the broker reports no changed file when it starts.

    Before a bug was fixed, the manifest contained the sizes that a segment's indexes had before the segment was closed.
    These sizes were no longer correct, so the broker reported the indexes as changed.
    """
    log = data.start(config)
    for _ in range(4):
        for number in range(20):
            log.append(change_batch([(b"key %d" % (number % 3), b"%d" % number)]))
        log.flush()
        if config.compacts:
            compact(data)
        expected = offsets(log)
        caplog.clear()
        data.end(clean=clean)
        log = data.start()
        assert reports(caplog) == []
        assert offsets(log) == expected


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", [Path.unlink, lambda path: os.truncate(path, 0)])
def test_an_index_that_a_start_has_rebuilt_is_not_reported_again(
    data: DataDirectory, caplog: pytest.LogCaptureFixture, suffix: str, clean: bool, damage: Callable[[Path], None]
) -> None:
    fill(data.start())
    data.end(clean=clean)
    damage(data.segments()[1].with_suffix(suffix))
    assert offsets(data.start()) == list(range(20))
    data.end(clean=clean)
    caplog.clear()
    caplog.set_level(logging.INFO)
    assert offsets(data.start()) == list(range(20))
    assert not [record for record in caplog.records if "the broker rebuilds both indexes" in record.getMessage()]


def test_an_index_that_a_reader_has_rebuilt_is_not_reported_at_the_next_start(
    data: DataDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    config = LogConfig(segment_bytes=2_000, index_interval_bytes=200)
    # The loop starts the log twice. A restarted log does not know how many bytes follow its last index entry.
    for first in (0, 5):
        log = data.start(config)
        for number in range(first, 5 * first + 5):
            log.append(batch(2, first_timestamp=now_ms() + 10 * number))
        data.stop()
    path = data.segments()[0].with_suffix(".timeindex")
    entries = bytearray(path.read_bytes())
    for position in range(11, len(entries) - 12, 12):
        entries[position] ^= 4  # a byte of the entry's offset
    path.write_bytes(entries)
    for _ in range(2):
        caplog.clear()
        log = data.start()
        assert log.offset_for_timestamp(log.segments[0].max_timestamp) is not None
        data.stop()
    assert reports(caplog) == []


def test_a_new_log_is_not_damage(data: DataDirectory, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    data.start()
    data.stop()
    data.start()
    messages = [record.getMessage() for record in caplog.records]
    assert not [message for message in messages if re.search("is damaged|missing|is checked", message)]


# -- changes of a compacted log


@pytest.mark.parametrize("without_manifest", [False, True])
def test_a_compacted_log_with_gaps_keeps_its_records_when_its_policy_changes(
    data: DataDirectory, without_manifest: bool
) -> None:
    """A compacted log with gaps keeps its records if the broker restarts and the log has another cleanup policy.

    Before a bug was fixed, the broker removed all records of the log when it restarted. The log end offset fell from
    130 to 0, and the log assigned the same offsets again.
    """
    log = data.start(COMPACTED)
    for number in range(130):
        log.append(change_batch([(b"key %d" % (number % 7), b"%d" % number)]))
    log.flush()
    compact(data)
    assert len(offsets(log)) < 40
    before = table(log)
    data.kill()
    (data.path / RECOVERY_POINTS).unlink(missing_ok=True)
    if without_manifest:
        (data.path / manifest.NAME).unlink()
    log = data.start(LogConfig(segment_bytes=400))
    assert (table(log), log.log_end_offset) == (before, 130)
    assert log.append(batch(1)).base_offset == 130


# -- changes of segments


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("config", [CONFIG, LogConfig(segment_bytes=CONFIG.segment_bytes, cleanup_policy="compact")])
def test_a_segment_that_is_lost_is_reported_and_readers_get_past_it(
    data: DataDirectory, caplog: pytest.LogCaptureFixture, config: LogConfig, number: int, clean: bool
) -> None:
    log = data.start(config)
    for each in range(20):
        log.append(change_batch([(b"key %d" % each, b"%d" % each)]))
    log.flush()
    lost = range(log.segments[number].base_offset, log.segments[number + 1].base_offset)
    data.end(clean=clean)
    path = data.segments()[number]
    for file in path.parent.glob(f"{path.stem}.*"):
        if file.suffix != ".snapshot":
            file.unlink()
    log = data.start()
    assert [message for message in reports(caplog) if str(path) in message]
    assert [offset for offset in range(20) if offset not in lost] == offsets(log)
    assert log.log_end_offset == 20
    caplog.clear()
    data.end(clean=clean)
    assert offsets(data.start()) == [offset for offset in range(20) if offset not in lost]
    assert reports(caplog) == []


def test_a_segment_that_retention_deleted_is_not_missed(
    data: DataDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    log = fill(data.start(replace(CONFIG, retention_ms=-1)))
    deletion.delete_records(log, 9)
    assert deletion.expire(log, at_once=True) == 1
    data.kill()
    assert data.start().log_start_offset == 8
    assert reports(caplog) == []


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", ["deleted", "emptied", "halved"])
def test_aborted_records_stay_invisible_without_the_transaction_index(
    data: DataDirectory, caplog: pytest.LogCaptureFixture, damage: str, clean: bool
) -> None:
    log = data.start(LogConfig(segment_ms=2**40))
    writer = Writer(log, 7)
    for number in range(12):
        writer.write(1, first_timestamp=now_ms())
        writer.end(ABORT if number % 2 else COMMIT)
    log.flush()
    expected = committed_offsets(log)
    data.end(clean=clean)
    path = data.segments()[0].with_suffix(".txnindex")
    size = path.stat().st_size
    path.unlink() if damage == "deleted" else os.truncate(path, size // 2 if damage == "halved" else 0)
    assert committed_offsets(data.start()) == expected
    assert path.stat().st_size == size
    # After a clean stop, the broker compares each index file with the manifest, and reports the damage. After a kill,
    # it rebuilds the indexes of the active segment without this comparison.
    if clean:
        assert f"{path} is missing or was changed" in caplog.text


# -- changes of state files


def test_a_changed_digit_in_a_checkpoint_hides_no_records(
    data: DataDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    fill(data.start())
    data.stop()
    path = data.path / START_OFFSETS
    path.write_text(path.read_text().replace("events 0 0", "events 0 8"))
    assert offsets(data.start()) == list(range(20))
    assert f"{path} is not what this broker wrote" in caplog.text


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", ["deleted", "bit flipped"])
def test_a_damaged_topic_id_is_restored_from_the_manifest(
    data: DataDirectory, caplog: pytest.LogCaptureFixture, damage: str, clean: bool
) -> None:
    """The broker restores a damaged topic id from the manifest.

    Before a bug was fixed, it assigned a new id. All groups then had the committed offset -1, because their offsets
    belonged to the old id.
    """
    data.start()
    assert data.logs is not None
    expected = data.logs.topic_ids()
    data.end(clean=clean)
    path = data.partition / TOPIC_ID
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content) if damage == "bit flipped" else path.unlink()
    data.start()
    assert data.logs.topic_ids() == expected
    assert f"{path} is missing or was changed" in caplog.text


def test_a_changed_identity_is_refused(data: DataDirectory) -> None:
    data.start()
    data.stop()
    path = data.path / "meta.properties"
    path.write_text(path.read_text().replace("node.id=0", "node.id=1"))
    with pytest.raises(DataDirectoryError, match=re.escape(f"{path} is not what this broker wrote")):
        data.start()


def test_the_error_names_a_directory_that_has_the_name_of_a_snapshot(data: DataDirectory) -> None:
    """If a directory has the name of a snapshot file, the broker does not start, and the error names the directory.

    Before a bug was fixed, the broker started, but each attempt to stop the broker failed.
    """
    fill(data.start())
    data.stop()
    path = max(data.partition.glob("*.snapshot"))
    path.unlink()
    path.mkdir()
    with pytest.raises(DataDirectoryError, match=re.escape(str(path))):
        data.start()


# -- changes of the manifest itself


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", ["emptied", "halved at a line's end", "halved", "doubled", "cut by a byte"])
def test_the_old_entries_of_a_cut_manifest_are_ignored(
    data: DataDirectory, caplog: pytest.LogCaptureFixture, damage: str, clean: bool
) -> None:
    """The broker ignores all entries of a damaged manifest, because the entries may be out of date.

    Before a bug was fixed, the broker used these entries, and reported each newer file as damaged.
    """
    log = fill(data.start())
    assert data.logs is not None
    deletion.delete_records(log, 9)
    data.logs.write_checkpoints()
    fill(log)
    data.end(clean=clean)
    path = data.path / manifest.NAME
    lines = path.read_bytes().rstrip(b"\n").split(b"\n")
    content = path.read_bytes()
    path.write_bytes({
        "emptied": b"",
        "halved at a line's end": b"\n".join(lines[: len(lines) // 2]) + b"\n",
        "halved": content[: len(b"\n".join(lines)) // 2],
        "doubled": content * 2,
        "cut by a byte": content[:-1],
    }[damage])  # fmt: skip
    log = data.start()
    assert (log.log_start_offset, offsets(log)[-1], log.log_end_offset) == (9, 39, 40)
    assert [f"{path} is damaged" in message for message in reports(caplog)] == [True]
    data.end(clean=clean)
    caplog.clear()
    data.start()
    assert reports(caplog) == []


def test_the_torn_entry_of_a_power_cut_is_cut_off(data: DataDirectory, caplog: pytest.LogCaptureFixture) -> None:
    fill(data.start())
    data.kill()
    path = data.path / manifest.NAME
    content = path.read_bytes()
    end = len(content.rstrip(b"\n")) + 1
    path.write_bytes((content[:end] + b"0123abcd segment eve").ljust(len(content), b"\n"))
    assert offsets(data.start()) == list(range(20))
    assert reports(caplog) == [f"{path}: the last lines are incomplete, so the broker ignores these lines"]


def test_the_manifest_keeps_its_size_until_its_empty_lines_are_used_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "LEAST_ROOM", 400)
    written = Manifest(tmp_path)
    written.open({"events-0": "id"}, {"events-0": []})
    sizes = set()
    for number in range(100):
        written.record({"events-0": [SegmentEntry(0, number, 0, 0, 0, 0, 0, 0)]})
        sizes.add(written.path.stat().st_size)
        found = Manifest(tmp_path).segments("events-0")
        assert found is not None and found[0].next_offset == number
    assert len(sizes) < 5


def test_entries_that_found_a_full_disk_are_written_with_the_next_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Manifest(tmp_path)
    written.open({"events-0": "id"}, {"events-0": []})
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", _fail)
        patch.setattr(os, "fsync", _fail)
        with pytest.raises(OSError, match="No space"):
            written.record({"events-0": [SegmentEntry(0, 5, 0, 0, 0, 0, 0, 0)]})
    written.record({"events-0": [SegmentEntry(5, 9, 0, 0, 0, 0, 0, 0)]})
    assert set(Manifest(tmp_path).segments("events-0") or ()) == {0, 5}


def _fail(_: object) -> None:
    raise OSError(28, "No space left on device")


def test_what_another_broker_has_written_since_is_accepted(
    data: DataDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    fill(data.start())
    data.stop()
    (data.path / CLEAN_SHUTDOWN).write_text('{"version":0,"brokerEpoch":7}')
    shutil.rmtree(data.path / str(NAME))
    other = TopicPartition("other", 0)
    data.partitions = (other,)
    data.start()
    assert reports(caplog) == []
    assert data.logs is not None and [name for name, _ in data.logs.items()] == [other]
