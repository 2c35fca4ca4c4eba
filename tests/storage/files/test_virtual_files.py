"""Tests of virtual files: the broker has more files than descriptors, so it closes one file to open another."""

from __future__ import annotations

import errno
import gc
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.files.virtual import OPEN_FILES, DurableFile, SyncFailed, VirtualFile
from hmb.storage.log import Log
from tests.storage.conftest import LogMaker, batch, read_all

FEW = 3  # the limit of open files in these tests


@pytest.fixture(autouse=True)
def few() -> Iterator[None]:
    """Set the limit of open files to FEW for a test.

    The fixture also removes the files of earlier tests from the list of open files, because these files may close at
    any time.
    """
    gc.collect()
    limit = OPEN_FILES.limit
    OPEN_FILES.descriptors.clear()
    OPEN_FILES._clock.clear()
    OPEN_FILES.limit = FEW
    yield
    OPEN_FILES.limit = limit


def files(directory: Path, count: int) -> list[DurableFile]:
    """Return `count` closed and synced files. Each one contains its number."""
    found = [DurableFile(directory / str(number), exists=False) for number in range(count)]
    for number, file in enumerate(found):
        file.write([b"%d" % number], 0)
        file.sync()
        file.close()
    return found


def is_open(file: DurableFile) -> bool:
    return file._file is not None


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list. Each sync of a file adds the file's name to this list."""
    names: list[str] = []
    fdatasync = os.fdatasync

    def note(descriptor: int) -> None:
        names.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fdatasync(descriptor)

    monkeypatch.setattr(os, "fdatasync", note)
    return names


def failing(*_: object) -> None:
    raise OSError(errno.EIO, "Input/output error")


def test_no_more_files_are_open_than_the_limit_allows(tmp_path: Path) -> None:
    found = files(tmp_path, 20)
    for _ in range(3):
        for number, file in enumerate(found):
            assert file.read(9, 0) == b"%d" % number
            assert sum(map(is_open, found)) <= FEW
            assert len(OPEN_FILES.descriptors) <= OPEN_FILES.limit


def test_a_file_that_is_used_again_and_again_stays_open(tmp_path: Path) -> None:
    often, *rest = files(tmp_path, 20)
    descriptor = often.open().fileno()
    for file in rest:
        file.read(1, 0)
        assert often.open().fileno() == descriptor


def test_a_closed_file_is_still_read_by_a_thread_that_uses_it(tmp_path: Path) -> None:
    first, *rest = files(tmp_path, 20)
    held = first.open()
    first.path.unlink()
    for file in rest:
        file.read(1, 0)
    assert not is_open(first)
    assert os.pread(held.fileno(), 9, 0) == b"0"


def test_a_deleted_file_is_not_created_again_when_it_is_opened_again(tmp_path: Path) -> None:
    (file,) = files(tmp_path, 1)
    file.path.unlink()
    with pytest.raises(FileNotFoundError):
        file.read(1, 0)
    assert not file.path.exists()


def test_a_closed_file_opens_under_its_new_name(tmp_path: Path) -> None:
    (file,) = files(tmp_path, 1)
    file.rename(tmp_path / "renamed")
    (tmp_path / "0").write_bytes(b"another")
    assert file.read(9, 0) == b"0"


def test_an_unused_file_releases_its_descriptor(tmp_path: Path) -> None:
    before = len(OPEN_FILES.descriptors)
    for _ in range(5):
        DurableFile(tmp_path / "file", exists=False).write([b"x"], 0)
        assert len(OPEN_FILES.descriptors) == before
    assert not [file for file in OPEN_FILES._clock if file() is None]


def test_clean_files_are_closed_first_and_a_written_one_is_synced_before(tmp_path: Path, synced: list[str]) -> None:
    a, b, c, d, e, f = files(tmp_path, 6)
    synced.clear()
    a.write([b"A"], 0)
    b.read(1, 0)
    c.write([b"C"], 0)
    d.read(1, 0)
    assert (is_open(a), is_open(b), is_open(c)) == (True, False, True)
    e.write([b"E"], 0)
    assert (is_open(d), synced) == (False, [])
    f.read(1, 0)  # Each of the three files has bytes that are not synced.
    closed = [file for file in (a, c, e) if not is_open(file)]
    assert synced == [file.path.name for file in closed]
    closed[0].sync_if_written()
    assert len(synced) == 1


def test_an_index_is_closed_without_a_sync(tmp_path: Path, synced: list[str]) -> None:
    indexes = [VirtualFile(tmp_path / str(number), exists=False) for number in range(9)]
    for index in indexes:
        index.write([b"x"], 0)
    assert synced == []


def test_a_failed_sync_of_a_file_that_had_to_be_closed_fails_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    written = files(tmp_path, 1)[0]
    written.write([b"w"], 0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", failing)
        while is_open(written):
            assert OPEN_FILES.close_one()
    assert "a sync has failed (Input/output error)" in caplog.text
    for action in (written.sync, written.sync_if_written, lambda: written.write([b"x"], 0)):
        with pytest.raises(SyncFailed, match="Input/output error"):
            action()
    assert written.read(9, 0) == b"w"


def test_a_log_accepts_no_records_after_the_failed_sync_of_a_closed_file(
    open_log: LogMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log()
    for _ in range(2):
        log.append(batch(1))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", failing)
        while any(is_open(segment.file) for segment in log.segments):
            assert OPEN_FILES.close_one()
    for action in (log.flush, lambda: log.append(batch(1))):
        with pytest.raises(KafkaError) as error:
            action()
        assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.recovery_point == 0
    assert len(read_all(log)) == 2


def test_a_process_without_descriptors_closes_a_file_for_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If no file descriptor is left, the broker closes one of its files to open another one.

    Other parts of the process use descriptors, too. The process may therefore have no descriptor left although the
    broker uses fewer descriptors than its own limit.
    """
    first, second, third = files(tmp_path, 3)
    first.read(1, 0)
    second.read(1, 0)
    open_ = os.open

    def full(path: Path, *rest: int) -> int:
        if sum(map(is_open, (first, second, third))) == 2:
            raise OSError(errno.EMFILE, "Too many open files")
        return open_(path, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", full)
        assert third.read(1, 0) == b"2"
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", lambda *_: failing_with(errno.EMFILE))
        with pytest.raises(OSError, match="Too many open files"):
            DurableFile(tmp_path / "new", exists=False).read(1, 0)


def failing_with(code: int) -> int:
    raise OSError(code, os.strerror(code))


def test_threads_never_get_bytes_of_another_file(tmp_path: Path) -> None:
    """Several threads read many files while the broker closes and opens them.

    The kernel gives the number of a closed descriptor to the next file. A thread that kept only this number would read
    the wrong file.
    """
    found = files(tmp_path, 12)
    wrong: list[object] = []

    def work(seed: int) -> None:
        choose = random.Random(seed)
        for attempt in range(400):
            number = choose.randrange(len(found))
            if attempt % 5 == 0:
                found[number].write([b"%d" % number], 0)
            elif found[number].read(9, 0) != b"%d" % number:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert [file.path.read_bytes() for file in found] == [b"%d" % number for number in range(12)]
    assert len(OPEN_FILES.descriptors) <= OPEN_FILES.limit


def descriptors_of(log: Log) -> int:
    return sum(is_open(file) for segment in log.segments for file in segment.files)


def test_a_segment_that_nobody_uses_keeps_no_descriptor(open_log: LogMaker) -> None:
    OPEN_FILES.limit += 1_000
    log = open_log(segment_bytes=100)
    for _ in range(300):
        log.append(batch(1))
    assert len(log.segments) == 300
    assert descriptors_of(log) <= 3
    log = open_log(clean=False, segment_bytes=100)
    log.flush()
    assert descriptors_of(log) <= 3
    assert len(read_all(log)) == 300


def test_a_log_of_many_segments_is_written_and_read_with_a_few_descriptors(open_log: LogMaker) -> None:
    log = open_log(segment_bytes=100)
    for _ in range(50):
        log.append(batch(1))
        assert len(OPEN_FILES.descriptors) <= OPEN_FILES.limit
    assert len(read_all(log)) == 50
    log.flush()
    log.close()
    log = open_log(clean=False, segment_bytes=100)
    assert len(read_all(log)) == 50
    assert len(OPEN_FILES.descriptors) <= OPEN_FILES.limit


def test_a_sync_does_not_wait_for_itself_if_a_writer_opens_the_file_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The thread that syncs the file has to close another file first. Meanwhile a writer opens the file that is synced,
    # and this file is then the only one that can be closed. Before a bug was fixed, the thread waited for its own lock.
    OPEN_FILES.limit = 1
    file = DurableFile(tmp_path / "file", exists=False)
    make_room = OPEN_FILES.make_room

    def make_room_after_a_write() -> None:
        if threading.current_thread() is syncer:
            writer = threading.Thread(target=file.write, args=([b"a"], 0))
            writer.start()
            writer.join()
        make_room()

    monkeypatch.setattr(OPEN_FILES, "make_room", make_room_after_a_write)
    syncer = threading.Thread(target=file.sync, daemon=True)
    syncer.start()
    syncer.join(10)
    assert not syncer.is_alive()
    assert file.read(1, 0) == b"a"
