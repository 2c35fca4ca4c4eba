"""The cleaner over several rounds, restarts and topics that go and come again."""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from uuid import uuid4

import pytest

from hmb.storage.checkpoints import TopicPartition
from hmb.storage.cleaner import Cleaner
from hmb.storage.log_manager import LogManager
from tests.storage.test_compaction import CONFIG, change_batch, fill, table

NAME = TopicPartition("t", 0)


def opened(directory: Path) -> tuple[LogManager, Cleaner]:
    logs = LogManager(directory)
    logs.load({}, CONFIG)
    return logs, Cleaner(logs, max_memory=1_000_000, rate=float("inf"), stop=threading.Event())


@pytest.mark.parametrize("target", [".log.deleted", ".log"])
def test_after_a_failed_swap_the_next_round_deleted_the_new_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """The log was still `.swap` in memory: the next round's file took its name and was then marked `.deleted`."""
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
