"""Tests of the log manager, which creates, checks and closes all logs of a data directory."""

from __future__ import annotations

import threading
import uuid
from pathlib import Path

import pytest

from hmb.protocol.topics import TopicPartition
from hmb.records import Record, RecordBatch, encode_batch
from hmb.storage.cleanup import deletion
from hmb.storage.compaction.cleaner import Cleaner
from hmb.storage.config import LogConfig
from hmb.storage.failure_isolation import Stopped
from hmb.storage.files import together
from hmb.storage.log import Log
from hmb.storage.log_manager import LogManager
from hmb.storage.state.manifest import CLEAN_SHUTDOWN
from tests.storage.conftest import batch, delete, read_all

NAME = TopicPartition("events", 0)
SIZE = len(encode_batch([Record(0, 1_000, b"k", b"v")]))
CONFIG = LogConfig(
    cleanup_policy="compact,delete", segment_bytes=2 * SIZE, retention_ms=-1, min_cleanable_dirty_ratio=0
)


def opened(directory: Path, config: LogConfig = CONFIG) -> LogManager:
    logs = LogManager(directory)
    logs.load({}, config)
    return logs


def filled(logs: LogManager) -> Log:
    log = logs.create(NAME, CONFIG, uuid.uuid4())
    for _ in range(10):
        log.append(RecordBatch.parse(encode_batch([Record(0, 1_000, b"k", b"v")])))
    return log


def everything(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_after_the_close_nothing_in_the_directory_changes(tmp_path: Path) -> None:
    """A closed log manager changes nothing in its directory, because another broker may use the directory."""
    logs, stop = opened(tmp_path), threading.Event()
    log = filled(logs)
    deletion.delete_records(log, 6)
    cleaner = Cleaner(logs, max_memory=1 << 20, rate=1e9, stop=stop)
    stop.set()
    logs.close()
    before = everything(tmp_path)
    logs.expire()
    logs.flush_if_due()
    logs.write_checkpoint(tmp_path / "cleaner-offset-checkpoint", {NAME: 3})
    cleaner.run()
    for change in (lambda: delete(logs, NAME), lambda: logs.create(TopicPartition("t", 0), CONFIG, uuid.uuid4())):
        with pytest.raises(OSError, match="the broker is stopping"):
            change()
    assert everything(tmp_path) == before
    assert opened(tmp_path).items()[0][1].log_start_offset == 6


def test_a_close_waits_for_threads_that_work_on_the_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The method `close` waits until the housekeeping thread has finished its work on the segments.

    Before a bug was fixed, a slow thread still deleted segments after `close` had returned. At this time, another
    broker could already use the directory.
    """
    logs = opened(tmp_path)
    deletion.delete_records(filled(logs), 6)
    deleting, closing, closed = threading.Event(), threading.Event(), threading.Event()
    events: list[str] = []
    mark_deleted, refuse = together.mark_deleted, Log.refuse

    def delete_slowly(files: together.Files) -> None:
        deleting.set()
        assert closing.wait(10)
        closed.wait(0.1)  # The log stays open, so this wait always takes 0.1 s.
        mark_deleted(files)
        events.append("deleted")

    def begin_to_close(log: Log, *reason: object) -> None:
        refuse(log, *reason)  # type: ignore[arg-type]
        closing.set()

    monkeypatch.setattr(together, "mark_deleted", delete_slowly)
    monkeypatch.setattr(Log, "refuse", begin_to_close)
    housekeeper = threading.Thread(target=logs.expire)
    housekeeper.start()
    assert deleting.wait(10)
    logs.close()
    events.append("closed")
    closed.set()
    housekeeper.join(10)
    assert events == ["deleted"] * 3 + ["closed"]
    assert (tmp_path / CLEAN_SHUTDOWN).exists()


def test_a_check_that_is_canceled_starts_again(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    log = filled(logs)
    logs.close()
    (tmp_path / CLEAN_SHUTDOWN).unlink()
    before = everything(tmp_path)
    stop = threading.Event()
    stop.set()
    stopped = LogManager(tmp_path, stop=stop)
    with pytest.raises(Stopped):
        stopped.load({}, CONFIG)
    stopped.close()
    assert everything(tmp_path) == before
    (_, again), *_ = opened(tmp_path).items()
    assert [record.offset for record in read_all(again)] == list(range(log.log_end_offset))


def test_a_log_that_is_created_while_the_broker_stops_is_not_checked(tmp_path: Path) -> None:
    """A request can still create an internal topic while the broker stops.

    The event `stop` cancels only the check of existing logs. A new log needs no check, so the broker creates it.
    """
    stop = threading.Event()
    logs = LogManager(tmp_path, stop=stop)
    logs.load({}, CONFIG)
    stop.set()
    assert logs.create(NAME, CONFIG, uuid.uuid4()).log_end_offset == 0
    logs.close()


def test_a_check_can_be_canceled_inside_a_segment(directory: Path) -> None:
    """The broker can be stopped while it checks a segment, because the check of a segment of 1 GB takes long."""
    log = Log(directory, LogConfig(), clean=True)
    for _ in range(3):
        log.append(batch(1))
    seen = iter([False, False, True])

    class Stop(threading.Event):
        def is_set(self) -> bool:
            return next(seen)

    with pytest.raises(Stopped):
        Log(directory, LogConfig(), stop=Stop())
    assert Log(directory, LogConfig()).log_end_offset == 3


@pytest.mark.parametrize("task", ["expire", "flush_if_due", "close"])
def test_an_internal_error_in_one_log_does_not_end_the_round_for_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, task: str
) -> None:
    logs = opened(tmp_path)
    names = [TopicPartition("events", number) for number in range(3)]
    for name in names:
        logs.create(name, CONFIG, uuid.uuid4())
    seen: list[str] = []

    def failing(log: Log) -> None:
        seen.append(log.directory.name)
        if log.directory.name == "events-1":
            raise ZeroDivisionError("planted")

    with monkeypatch.context() as patch:
        patch.setattr(deletion if task == "expire" else Log, task, failing)
        getattr(logs, task)()
    assert seen == [str(name) for name in names]
    assert "events-1: " in caplog.text and "planted" in caplog.text
    assert not (tmp_path / CLEAN_SHUTDOWN).exists()
