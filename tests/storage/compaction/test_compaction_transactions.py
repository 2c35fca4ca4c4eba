"""Tests of compaction with transactions: compaction does not change the last committed value of any key."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmb.records import iter_batches
from hmb.storage.cleanup import replacement
from hmb.storage.log import Log
from hmb.storage.segment import Segment
from hmb.storage.transaction_index import AbortedTransaction
from tests.storage.compaction.test_compaction import CONFIG, Change, Crash, change_batch, compact
from tests.storage.conftest import read_all
from tests.storage.test_transactions import aborted
from tests.storage.transactions import ABORT, COMMIT, committed_offsets

RETENTION = CONFIG.delete_retention_ms
change = st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.none() | st.binary(max_size=40))
changes = st.lists(change, min_size=1, max_size=4)
producers = st.integers(0, 3)
step = st.one_of(
    st.tuples(st.just("plain"), producers, changes),
    st.tuples(st.just("write"), producers, changes),
    st.tuples(st.sampled_from(["commit", "abort"]), producers, st.just([])),
    st.tuples(st.just("compact"), producers, st.just([])),
)


class Run:
    """A log, and the values that consumers with read_committed must get from it."""

    def __init__(self, directory: Path) -> None:
        self.log = Log(directory, CONFIG, clean=True, clock=lambda: 1_000)
        self.sequences = dict.fromkeys(range(4), 0)
        self.open: dict[int, dict[int, Change]] = {}
        self.committed: dict[int, Change] = {}
        self.first_dirty, self.now = 0, 1_000

    def take(self, kind: str, producer: int, changes: Sequence[Change]) -> None:
        if kind == "plain":
            base_offset = self.log.append(change_batch(changes)).base_offset
            self.committed |= {base_offset + index: each for index, each in enumerate(changes)}
        elif kind == "write":
            options = {"producer_id": producer, "producer_epoch": 0, "base_sequence": self.sequences[producer]}
            base_offset = self.log.append(change_batch(changes, transactional=True, **options)).base_offset
            self.sequences[producer] += len(changes)
            written = {base_offset + index: each for index, each in enumerate(changes)}
            self.open[producer] = self.open.get(producer, {}) | written
        elif kind == "compact":
            self.first_dirty = compact(self.log, first_dirty=self.first_dirty, now=self.now)
            self.now += RETENTION // 2
        else:
            self.log.append_marker(COMMIT if kind == "commit" else ABORT, producer, 0)
            written = self.open.pop(producer, {})
            if kind == "commit":
                self.committed |= written

    def table(self) -> dict[bytes, bytes]:
        """Return a dict that maps each key to its newest committed value.

        The method ignores records at or above the last stable offset, and leaves out deleted keys.
        """
        stable = min((min(written) for written in self.open.values()), default=2**63)
        last = {key: value for offset, (key, value) in sorted(self.committed.items()) if offset < stable}
        return {key: value for key, value in last.items() if value is not None}


def committed_table(log: Log) -> dict[bytes, bytes]:
    records = {record.offset: record for record in read_all(log)}
    last = {records[offset].key: records[offset].value for offset in committed_offsets(log, 200)}
    return {key: value for key, value in last.items() if key is not None and value is not None}


@settings(max_examples=150, deadline=None)
@given(st.lists(step, max_size=60))
def test_a_reader_of_committed_records_gets_the_same_values(steps: list[tuple[str, int, list[Change]]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name) / "t-0"
        directory.mkdir()
        run = Run(directory)
        for each in [*steps, ("compact", 0, []), ("compact", 0, [])]:
            run.take(*each)
        log = run.log
        assert committed_table(log) == run.table()
        unfinished = {offset for written in run.open.values() for offset in written}
        assert unfinished <= {record.offset for record in read_all(log)}
        knowledge = committed_offsets(log), aborted(log), log.last_stable_offset, log.log_end_offset
        log.close()
        for clean in (True, False):
            if not clean:
                for path in directory.glob("*.txnindex"):
                    path.unlink()
            again = Log(directory, CONFIG, clean=clean)
            assert (committed_offsets(again), again.last_stable_offset, again.log_end_offset) == (
                knowledge[0], *knowledge[2:])  # fmt: skip
            if clean:
                assert aborted(again) == knowledge[1]


@pytest.fixture
def run(directory: Path) -> Run:
    return Run(directory)


def control_offsets(log: Log) -> list[int]:
    found = []
    for segment in log.segments:
        found += [b.base_offset for b in iter_batches(segment.path.read_bytes()) if b.is_control]
    return found


def transaction(run: Run, end: str) -> None:
    run.take("write", 1, [(b"k", end.encode() * 5)])
    run.take(end, 1, [])


def test_a_marker_is_removed_when_no_record_of_its_transaction_is_left(run: Run) -> None:
    transaction(run, "abort")
    transaction(run, "commit")
    transaction(run, "commit")
    for _ in range(12):
        run.take("plain", 0, [(b"k", b"x" * 60)])
    assert control_offsets(run.log) == [1, 3, 5]
    assert aborted(run.log) == [AbortedTransaction(1, 0, 1, 2)]
    kept, entries = [], []
    for now in (0, 0, RETENTION - 1, RETENTION, 2 * RETENTION):
        compact(run.log, now=now)
        kept.append(control_offsets(run.log))
        entries.append(aborted(run.log))
    # The first round removes the batches. The next round gives the markers a delete horizon, and a later one removes
    # them. The last batch of a producer stays without its records, and so does its marker.
    assert kept == [[1, 3, 5], [1, 3, 5], [1, 3, 5], [5], [5]]
    assert entries == [[AbortedTransaction(1, 0, 1, 2)], [], [], [], []]


@pytest.fixture
def long_abort(run: Run) -> Run:
    """Return a log with one aborted transaction, which extends over several segments.

    Each key occurs once in the transaction. The abort marker is the last batch.
    """
    for number in range(20):
        run.take("write", 1, [(b"k", b"x" * 60), (b"%d" % number, b"only here")])
    run.take("plain", 0, [(b"other", b"y")])
    run.take("abort", 1, [])
    for _ in range(12):
        run.take("plain", 0, [(b"k", b"z" * 60)])
    return run


def test_an_abort_is_known_as_long_as_a_batch_of_its_transaction_is_left(
    long_abort: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log remembers the abort of a transaction until the cleaner has removed all batches of the transaction.

    The cleaner compacts the segments of a long transaction one after the other, and may crash after each one.
    """
    run = long_abort
    expected = run.table()
    crashed = run.log.directory.with_name("crashed-0")
    replace = replacement.replace

    def replace_and_look(log: Log, old: Sequence[Segment], new: Segment) -> None:
        assert committed_table(run.log) == expected
        replace(log, old, new)
        assert committed_table(run.log) == expected
        shutil.rmtree(crashed, ignore_errors=True)
        shutil.copytree(run.log.directory, crashed)
        for recovery_point in (0, run.log.log_end_offset):
            assert committed_table(Log(crashed, CONFIG, recovery_point=recovery_point)) == expected

    monkeypatch.setattr(replacement, "replace", replace_and_look)
    for now in (0, RETENTION, 2 * RETENTION):
        compact(run.log, now=now)
    assert committed_table(run.log) == expected
    (entry,) = aborted(run.log)
    assert [entry.last_offset] == control_offsets(run.log)  # The producer's last batch stays.


@pytest.mark.parametrize("renames", range(20))
def test_a_crash_in_the_swap_shows_no_aborted_record(
    long_abort: Run, renames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, expected, left, rename = long_abort.log, long_abort.table(), renames, Path.rename

    def crashing(path: Path, target: Path) -> Path:
        nonlocal left
        if left == 0:
            raise Crash
        left -= 1
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", crashing)
        patch.setattr(Path, "unlink", lambda *_, **__: None)  # A killed broker deletes no files.
        with pytest.raises(Crash):
            for now in (0, RETENTION, 2 * RETENTION):
                compact(log, now=now)
    for recovery_point in (0, log.log_end_offset):
        crashed = log.directory.with_name(f"crashed-{recovery_point}")
        shutil.copytree(log.directory, crashed)
        for _ in range(2):
            assert committed_table(Log(crashed, CONFIG, recovery_point=recovery_point)) == expected
