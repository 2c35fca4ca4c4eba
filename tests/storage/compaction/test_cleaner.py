"""Tests of the cleaner over several rounds and restarts, and with topics that are deleted and created again."""

from __future__ import annotations

import errno
import logging
import os
import threading
import weakref
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from hmb.protocol.topics import TopicPartition
from hmb.storage.compaction import cleaner as cleaner_module
from hmb.storage.compaction import swap
from hmb.storage.compaction.cleaner import Cleaner
from hmb.storage.files import together
from hmb.storage.log import Log
from hmb.storage.log_manager import LogManager
from hmb.storage.state.checkpoints import offsets_content
from tests.storage.compaction.test_compaction import CONFIG, change_batch, fill, table
from tests.storage.conftest import delete, read_all

NAME = TopicPartition("t", 0)


def opened(directory: Path) -> tuple[LogManager, Cleaner]:
    logs = LogManager(directory)
    logs.load({}, CONFIG)
    return logs, Cleaner(logs, max_memory=1_000_000, rate=float("inf"), stop=threading.Event())


@pytest.mark.parametrize("target", [".log.deleted", ".log"])
def test_after_a_failed_swap_the_next_round_keeps_the_new_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """If the cleaner cannot rename a segment's file, the next round does not delete the compacted records.

    Before a bug was fixed, the compacted file kept its temporary name, which ends with `.swap`. The next round gave its
    own compacted file the same name, and then deleted this new file.
    """
    logs, cleaner = opened(tmp_path)
    log = logs.create(NAME, CONFIG, uuid4())
    for number in range(100):
        log.append(change_batch([(b"once %d" % number if number % 15 == 7 else b"key %d" % (number % 4), b"value")]))
    rename, failures = Path.rename, [target]

    def failing(path: Path, to: Path) -> Path:
        if failures and str(to).endswith(target):
            failures.pop()
            raise OSError(errno.EIO, "Input/output error")
        return rename(path, to)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", failing)
        cleaner.run()
    for _ in range(3):
        fill(log)
        cleaner.run()
    before = table(log)
    assert len(before) == 11
    logs.close()
    logs, cleaner = opened(tmp_path)
    ((_, log),) = logs.items()
    assert (table(log), log.log_start_offset) == (before, 0)
    fill(log)
    before, size = table(log), log.size
    cleaner.run()
    assert table(log) == before and log.size < size
    logs.close()


def fill_over_an_early_key(log: Log) -> None:
    log.append(change_batch([(b"early", b"old")]))
    log.append(change_batch([(b"early", b"new")]))
    fill(log, 60)


def early(log: Log) -> list[bytes | None]:
    return [record.value for record in read_all(log) if record.key == b"early"]


def test_a_topic_created_again_after_a_restart_is_compacted_from_offset_0(tmp_path: Path) -> None:
    """The cleaner starts at offset 0 of a topic that was deleted and created again.

    Before a bug was fixed, the cleaner started at the offset where it had stopped in the deleted topic. A key whose
    records were all below this offset kept its old values.
    """
    logs, cleaner = opened(tmp_path)
    fill(logs.create(NAME, CONFIG, uuid4()), 40)
    cleaner.run()
    delete(logs, NAME)
    logs.close()
    logs, cleaner = opened(tmp_path)
    log = logs.create(NAME, CONFIG, uuid4())
    fill_over_an_early_key(log)
    cleaner.run()
    assert early(log) == [b"new"]
    logs.close()


def test_a_topic_created_again_before_a_restart_is_compacted_from_offset_0(tmp_path: Path) -> None:
    logs, cleaner = opened(tmp_path)
    fill(logs.create(NAME, CONFIG, uuid4()), 40)
    cleaner.run()
    delete(logs, NAME)
    log = logs.create(NAME, replace(CONFIG, cleanup_policy="delete"), uuid4())
    cleaner.run()
    fill_over_an_early_key(log)
    logs.close()
    logs, cleaner = opened(tmp_path)
    ((_, log),) = logs.items()
    cleaner.run()
    assert early(log) == [b"new"]
    logs.close()


def test_a_first_dirty_offset_after_the_end_of_the_log_is_not_used(tmp_path: Path) -> None:
    logs, _ = opened(tmp_path)
    log = logs.create(NAME, CONFIG, uuid4())
    fill_over_an_early_key(log)
    (tmp_path / "cleaner-offset-checkpoint").write_text(offsets_content({NAME: log.log_end_offset + 20}))
    logs.close()
    logs, cleaner = opened(tmp_path)
    ((_, log),) = logs.items()
    # The log end offset is now above the first dirty offset in the checkpoint file.
    fill(log, 20)
    cleaner.run()
    assert early(log) == [b"new"]
    logs.close()


def test_a_round_does_not_append_to_the_file_of_a_failed_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, cleaner = opened(tmp_path)
    log = logs.create(NAME, CONFIG, uuid4())
    for number in range(20):  # Compaction keeps one record of each batch.
        log.append(change_batch([(b"once %d" % number, b"value"), (b"key", b"%d" % number)]))
    expected = table(log)

    def broken(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(swap, "make_ready", broken)
        patch.setattr(together, "delete", broken)
        patch.setattr(cleaner_module, "FIRST_PAUSE", 0.0)  # The next round tries this log again without a pause.
        cleaner.run()
    assert list(log.directory.glob("*.log.cleaned"))
    before = log.size
    cleaner.run()
    assert not list(log.directory.glob("*.cleaned"))
    assert log.size < before
    offsets = [record.offset for record in read_all(log)]
    assert offsets == sorted(set(offsets))
    assert table(log) == expected
    logs.close()


@pytest.mark.parametrize("damaged", [False, True])
def test_the_cleaner_held_the_files_of_deleted_topics_open(
    tmp_path: Path, damaged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    # pytest keeps logged errors, and such an error would keep the log in memory.
    caplog.set_level(logging.CRITICAL, "hmb.storage.compaction.cleaner")
    logs, cleaner = opened(tmp_path)
    log = logs.create(NAME, CONFIG, uuid4())
    fill(log)
    if damaged:
        log.segments[1].file.write([b"\xff"], 40)
    cleaner.run()
    active = log.segments[-1].file.open().fileno()
    held = weakref.ref(log)
    delete(logs, NAME)
    cleaner.run()
    del log
    assert held() is None
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(active)
    logs.close()


@pytest.mark.parametrize("harm", ["cut off", "damaged", "an internal error"])
def test_one_log_that_fails_does_not_stop_the_compaction_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, harm: str
) -> None:
    """If the cleaner fails in one log, it still compacts the other logs.

    The cleaner compacts the logs in rounds. Before a bug was fixed, an error in one log (for example a truncated file)
    ended the current round and each later round.
    """
    logs, cleaner = opened(tmp_path)
    made = [logs.create(TopicPartition("t", number), CONFIG, uuid4()) for number in range(3)]
    for log in made:
        fill(log)
    bad = made[1]
    segment = bad.segments[1]
    content = segment.path.read_bytes()
    if harm == "cut off":
        os.truncate(segment.path, segment.size // 2)
    elif harm == "damaged":
        segment.file.write([bytes([content[40] ^ 1])], 40)
    else:
        spend = cleaner_module.Throttle.spend
        monkeypatch.setattr(
            cleaner_module.Throttle, "spend", lambda self, size: spend(self, size // (bad.cleanup_lock.locked() ^ 1))
        )
    sizes = [log.size for log in made]
    cleaner.run()
    assert [log.size < size for log, size in zip(made, sizes, strict=True)] == [True, False, True]
    reported = [record for record in caplog.records if record.name == "hmb.storage.compaction.cleaner"]
    assert [record.levelname for record in reported] == ["ERROR"]
    assert "t-1: not compacted" in reported[0].message


def test_a_log_that_cannot_be_compacted_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After an error, the cleaner tries the same log again.

    It pauses before each attempt, and doubles the pause after each failure.
    """
    now = 0.0
    monkeypatch.setattr(cleaner_module.time, "monotonic", lambda: now)
    logs, cleaner = opened(tmp_path)
    log = logs.create(NAME, CONFIG, uuid4())
    fill(log)
    segment = log.segments[1]
    content = segment.path.read_bytes()
    segment.file.write([bytes([content[40] ^ 1])], 40)
    tries = []
    for second in range(200):
        now = float(second)
        before = len(caplog.records)
        cleaner.run()
        if len(caplog.records) > before:
            tries.append(second)
    assert tries == [0, 15, 45, 105]
    segment.file.write([content], 0)
    size, now = log.size, 225.0
    cleaner.run()
    assert log.size < size
    fill(log)
    size = log.size
    cleaner.run()
    assert log.size < size  # The cleaner pauses only after a failure.
    logs.close()
