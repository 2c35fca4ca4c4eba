"""Tests of a log. Each goldenscript (a file in tests/scripts/log) lists commands and their expected output.

    settings NAME=VALUE ...     change settings, such as `segment_bytes=150`
    append RECORD ...           append one batch; a record is VALUE, KEY:VALUE or a tombstone KEY:
    sync                        sync the log
    wait MS                     let time pass; a script begins at 1000 ms, and a record has the time of its append
    expire                      delete segments by the rules of retention
    delete OFFSET               delete the records below an offset, as a DeleteRecords request does
    compact                     compact the closed segments
    read [OFFSET]               print the records at and after an offset, and also the log's start and end offsets
    find TIME                   print the first record with this time or a later one
    show                        print the segments, their batches and records, as `hmb dump-log --tree` does
    index                       print the offset index of each segment, as `hmb dump-log` does
    stop                        close the log, and open it again
    kill                        open the log again without closing it first, as after a kill of the broker
    cut BYTES                   cut bytes off the end of the active segment
    damage OFFSET               flip a bit in the records of the batch that begins at this offset

The output of each command ends with the log's new events and the first sentence of each new warning. The offset index
of a segment contains one entry for each batch, except for the segment's first batch.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hmb.protocol.errors import KafkaError
from hmb.records import RECORD_BATCH_OVERHEAD, Record, RecordBatch, encode_batch
from hmb.storage.cleanup import deletion
from hmb.storage.compaction.cleaner import clean, compactable
from hmb.storage.compaction.throttle import Throttle
from hmb.storage.config import LogConfig
from hmb.storage.dump.entries import DumpOptions, View
from hmb.storage.dump.log_files import dump
from hmb.storage.dump.segment_files import walk
from hmb.storage.log import Log
from tests.scripts import goldenscript
from tests.storage.conftest import read_all

SCRIPTS = Path(__file__).parents[1] / "scripts" / "log"


class Session:
    """A log with one method for each command of a goldenscript."""

    def __init__(self, directory: Path, caplog: pytest.LogCaptureFixture) -> None:
        self.directory, self.caplog = directory, caplog
        self.config = LogConfig(index_interval_bytes=0)
        self.now = 1000  # ms
        self.first_dirty = 0
        self.log = self._open(is_clean=True, recovery_point=0)

    def _open(self, *, is_clean: bool, recovery_point: int) -> Log:
        clock = lambda: self.now  # noqa: E731  # Each call reads the present time.
        return Log(self.directory, self.config, clean=is_clean, recovery_point=recovery_point, clock=clock)

    def execute(self, command: str, words: list[str], options: dict[str, str]) -> Iterator[str]:
        log, events = self.log, len(self.log.events.all())
        self.caplog.clear()
        try:
            yield from getattr(self, command)(*words, **options)
        except KafkaError as error:
            yield error.code.name
        for event in log.events.all()[events:]:
            yield f"{event.kind}: {event.text.partition(': ')[2]}"
        for each in self.caplog.records:
            if each.levelno >= logging.WARNING:
                yield each.getMessage().replace(f"{self.directory}/", "").partition(". ")[0]

    def settings(self, **options: str) -> Iterator[str]:
        values = {name: int(text) if text.lstrip("-").isdigit() else text for name, text in options.items()}
        self.config = replace(self.config, **values)  # type: ignore[arg-type]
        self.log.reconfigure(self.config)
        yield from ()

    def append(self, *words: str) -> Iterator[str]:
        records = [_record(word, self.now) for word in words]
        result = self.log.append(RecordBatch.parse(encode_batch(records)))
        yield _offsets(result.base_offset, result.last_offset)

    def sync(self) -> Iterator[str]:
        self.log.flush()
        yield f"on disk below offset {self.log.recovery_point}"

    def wait(self, ms: str) -> Iterator[str]:
        self.now += int(ms)
        yield from ()

    def expire(self) -> Iterator[str]:
        yield f"deleted segments: {deletion.expire(self.log, at_once=True)}"

    def delete(self, offset: str) -> Iterator[str]:
        yield f"log start offset {deletion.delete_records(self.log, int(offset))}"

    def compact(self) -> Iterator[str]:
        work = compactable(self.log, self.first_dirty, self.now)
        throttle = Throttle(float("inf"), threading.Event())
        self.first_dirty = clean(self.log, work, max_memory=1_000_000, now=self.now, throttle=throttle)
        yield f"clean below offset {self.first_dirty}"

    def read(self, offset: str = "") -> Iterator[str]:
        first = int(offset) if offset else self.log.log_start_offset
        self.log.read(first, 1)  # Raises OFFSET_OUT_OF_RANGE.
        found = [record for record in read_all(self.log) if record.offset >= first]
        yield ", ".join(f"{record.offset} {_text(record)}" for record in found) or "no records"
        yield f"offsets {self.log.log_start_offset} to {self.log.log_end_offset}"

    def find(self, time: str) -> Iterator[str]:
        found = self.log.offset_for_timestamp(int(time))
        yield "no record" if found is None else f"offset {found.offset} at {found.timestamp} ms"

    def show(self) -> Iterator[str]:
        yield from self._dumped(".log", DumpOptions(view=View.TREE))
        yield from (f"{path.name}: {path.stat().st_size} bytes" for path in sorted(self.directory.glob("*.cut")))

    def index(self) -> Iterator[str]:
        yield from self._dumped(".index", DumpOptions())

    def _dumped(self, suffix: str, options: DumpOptions) -> Iterator[str]:
        paths = [segment.path.with_suffix(suffix) for segment in self.log.segments]
        for entry in dump([path for path in paths if path.exists()], options):
            yield entry.line().replace(f"{self.directory}/", "")

    def stop(self) -> Iterator[str]:
        self.log.close()
        self.log = self._open(is_clean=True, recovery_point=self.log.log_end_offset)
        yield f"ends at offset {self.log.log_end_offset}"

    def kill(self) -> Iterator[str]:
        self.log = self._open(is_clean=False, recovery_point=self.log.recovery_point)
        yield f"ends at offset {self.log.log_end_offset}"

    def cut(self, size: str) -> Iterator[str]:
        path = self.log.segments[-1].path
        path.write_bytes(path.read_bytes()[: -int(size)])
        yield from ()

    def damage(self, offset: str) -> Iterator[str]:
        segment = self.log.segments_from(int(offset))[0]
        with segment.path.open("r+b") as file:
            found = {batch.base_offset: at for at, batch in walk(file) if isinstance(batch, RecordBatch)}
            position = found[int(offset)]
            file.seek(position + RECORD_BATCH_OVERHEAD)
            (byte,) = file.read(1)
            file.seek(-1, 1)
            file.write(bytes([byte ^ 1]))
        yield f"{segment.path.name}, position {position}"


def _record(word: str, now: int) -> Record:
    key, colon, value = word.rpartition(":")
    return Record(timestamp=now, key=key.encode() if colon else None, value=value.encode() if value else None)


def _text(record: Record) -> str:
    key = "" if record.key is None else f"{record.key.decode()}:"
    return key + ("" if record.value is None else record.value.decode())


def _offsets(first: int, last: int) -> str:
    return f"offset {first}" if first == last else f"offsets {first} to {last}"


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_a_script_prints_its_expected_output(
    path: Path, directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session = Session(directory, caplog)
    assert goldenscript.run(path, session.execute) == path.read_text(encoding="utf-8")


def test_there_are_scripts() -> None:
    assert list(SCRIPTS.glob("*.txt"))
