"""Tests of a running broker's files that another process shortens or removes."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hmb.protocol.errors import KafkaError
from hmb.records import Codec, Record, encode_batch, encode_message_set
from hmb.storage.compaction.throttle import Throttle
from hmb.storage.files.sorted_entries import BLOCK
from hmb.storage.files.together import release
from hmb.storage.files.virtual import VirtualFile
from hmb.storage.files.windows import WINDOW, Windows
from hmb.storage.log import Log
from hmb.storage.recovery.checking import Damage, end_of_whole_batches
from hmb.storage.recovery.scanning import checked_batches
from hmb.units import now_ms
from tests.storage.compaction import test_compaction
from tests.storage.conftest import LogMaker, batch, messages, produced, read_all
from tests.storage.transactions import ABORT, COMMIT, Writer, committed_offsets

BATCHES = 3 * BLOCK  # Each batch has an index entry, so an index has three blocks.


def fill(log: Log, batches: int = BATCHES) -> None:
    for number in range(batches):
        log.append(batch(2, first_timestamp=10 * number))


@pytest.fixture
def log(open_log: LogMaker) -> Log:
    """Return a log of one segment.

    Its index has an entry for each batch except the first. The log has already read the index once.
    """
    log = open_log(index_interval_bytes=0)
    fill(log)
    log.read(7, 1)
    log.offset_for_timestamp(7)
    return log


def cut(path: Path, size: int) -> None:
    os.truncate(path, size)


def remove(path: Path, _: int) -> None:
    path.unlink()


def first_offset_read(log: Log, offset: int) -> int:
    region = log.read(offset, 1).records
    assert region is not None
    return int.from_bytes(region.read()[:8], "big")


# The sizes in bytes: no entry, a part of an entry, 100 entries, one block of entries, and a bit more than two blocks.
CUTS = [0, 3, 100 * 8, BLOCK * 8, 2 * BLOCK * 8 + 12]


@pytest.mark.parametrize("size", CUTS)
def test_an_offset_index_that_is_cut_while_it_is_used_misleads_no_reader(
    log: Log, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    index = log.segments[0].offset_index
    os.truncate(index.path, size)
    for offset in range(0, 2 * BATCHES, 37):
        assert index.lookup(offset).offset <= offset
        assert first_offset_read(log, offset) == offset - offset % 2
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.args[0] for record in errors] == [index.path]  # type: ignore[index]
    log.append(batch(2))
    assert len(read_all(log)) == 2 * BATCHES + 2


@pytest.mark.parametrize("size", CUTS)
def test_a_time_index_that_is_cut_while_it_is_used_misleads_no_look_up(log: Log, size: int) -> None:
    os.truncate(log.segments[0].time_index.path, size)
    for number in range(0, BATCHES, 19):
        found = log.offset_for_timestamp(10 * number)
        assert found is not None and found.offset == 2 * number


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_that_is_removed_while_it_is_closed_misleads_no_reader(log: Log, suffix: str) -> None:
    log.flush()
    release(log.segments[0].files)
    log.segments[0].path.with_suffix(suffix).unlink()
    assert first_offset_read(log, 1_000) == 1_000
    found = log.offset_for_timestamp(5_000)
    assert found is not None and found.offset == 1_000


@pytest.mark.parametrize("damage", [cut, remove])
def test_readers_of_committed_records_do_not_need_the_file_of_a_transaction_index(
    open_log: LogMaker, damage: Callable[[Path, int], None]
) -> None:
    log = open_log()
    for marker in (COMMIT, ABORT, COMMIT, ABORT):
        writer = Writer(log, 1)
        writer.sequence = log.log_end_offset // 2
        # If the record were much older than the transaction marker, the log would begin a new segment for the marker.
        writer.write(first_timestamp=now_ms())
        writer.end(marker)
    assert committed_offsets(log) == [0, 4]
    log.flush()
    release(log.segments[0].files)
    damage(log.segments[0].transaction_index.path, 34)
    assert committed_offsets(log) == [0, 4]


def test_a_segment_that_is_cut_while_it_is_checked_is_damage(log: Log) -> None:
    segment = log.segments[0]
    batches = checked_batches(Windows(segment.file, 2 * WINDOW), 0, None)  # The reader expects a longer file.
    checked = sum(1 for _ in range(BATCHES) if next(batches))
    assert checked == BATCHES
    with pytest.raises(Damage) as damage:
        next(batches)
    assert damage.value.position == segment.size
    assert end_of_whole_batches(Windows(segment.file, 2 * WINDOW), segment.size, 0) is None


def test_a_segment_that_is_cut_while_it_is_compacted_leaves_the_log_as_it_was(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(directory, test_compaction.CONFIG, clean=True)
    for number in range(60):
        log.append(test_compaction.change_batch([(b"%d" % (number % 7), bytes(40))]))
    segments, first = log.segments, log.segments[0]

    def cut_the_file(throttle: Throttle, size: int) -> None:
        os.truncate(first.path, first.size // 2)

    monkeypatch.setattr(Throttle, "spend", cut_the_file)
    with pytest.raises(KafkaError):
        test_compaction.compact(log)
    assert log.segments == segments
    assert not list(directory.glob("*.cleaned"))


def large_value() -> list[Record]:
    return [Record(0, 1_000, b"k", bytes(2 * WINDOW))]


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_batches_larger_than_a_window_are_recovered(open_log: LogMaker, magic: int) -> None:
    limit = {"max_message_bytes": 10 * WINDOW}
    log = open_log(**limit)
    large = produced(
        encode_batch(large_value()) if magic == 2 else encode_message_set(large_value(), magic, Codec.NONE)
    )
    for data in (messages(2, 1), large, batch(2), large, batch(1)):
        log.append(data)
    assert open_log(clean=False, **limit).log_end_offset == log.log_end_offset == 7


def test_a_damaged_length_does_not_bring_the_rest_of_the_segment_into_memory(
    open_log: LogMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log()
    for _ in range(8):
        log.append(batch(9, size=WINDOW // 10))
    first = log.segments[0]
    first.file.write([(first.size - 12).to_bytes(4, "big")], 8)
    largest, read = 0, VirtualFile.read

    def note(file: VirtualFile, size: int, position: int) -> bytes:
        nonlocal largest
        largest = max(largest, size)
        return read(file, size, position)

    monkeypatch.setattr(VirtualFile, "read", note)
    recovered = open_log(clean=False)
    assert recovered.log_end_offset == 0
    assert largest == WINDOW


def test_windows_read_each_byte_once_in_both_directions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, content, step = tmp_path / "file", os.urandom(3 * WINDOW + 5_000), 10_000
    path.write_bytes(content)
    reads: list[int] = []
    read = VirtualFile.read

    def note(file: VirtualFile, size: int, position: int) -> bytes:
        reads.append(size)
        return read(file, size, position)

    monkeypatch.setattr(VirtualFile, "read", note)
    positions = range(0, len(content), step)
    for order in (positions, reversed(positions)):
        windows = Windows(VirtualFile(path, exists=True), len(content))
        for position in order:
            size = min(step, len(content) - position)
            view, index = windows.at(position, size)
            assert bytes(view[index : index + size]) == content[position : position + size]
        assert sum(reads) < len(content) + 4 * step
        reads.clear()
    windows = Windows(VirtualFile(path, exists=True), len(content))
    assert b"".join(windows.chunks(7, len(content) - 7)) == content[7:-7]


SURVIVES = """
import os, sys
from pathlib import Path
from hmb.storage.config import LogConfig
from hmb.storage.log import Log
from tests.storage.recovery.test_cut_files import fill
directory = Path(sys.argv[1])
log = Log(directory, LogConfig(index_interval_bytes=0), clean=True)
fill(log)
for path in (None, *directory.glob("*index")):
    if path is not None:
        os.truncate(path, 0)
    log.read(7, 1)
    log.offset_for_timestamp(7)
print("alive")
"""


def test_a_cut_index_killed_the_process(directory: Path) -> None:
    """The broker survives if another process shortens an index file.

    Before a bug was fixed, the broker mapped its index files into memory. When a process reads a mapped byte that the
    file no longer contains, the kernel kills the process (SIGBUS).
    """
    run = subprocess.run([sys.executable, "-c", SURVIVES, str(directory)], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout) == (0, "alive\n"), run.stderr
