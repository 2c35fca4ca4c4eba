"""Tests of snapshot stores: a store refuses saves from old epochs, and reports damaged snapshots and full disks."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hmb.client import TopicPartition
from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.errors import SnapshotError, StaleEpochError, TopologyError
from hmb.hailstorm.monoids import MapOf, Mean, Sessions, Sliding, Sum, TopN, Tumbling
from hmb.hailstorm.monoids.windows import WindowsOf
from hmb.hailstorm.snapshots import (
    DirectorySnapshotStore,
    MemorySnapshotStore,
    SnapshotStore,
    SqliteSnapshotStore,
    directory,
)
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Processors, Topology
from tests.hailstorm.topologies import trending

P0 = TopicPartition("words", 0)
C1, C2, C3 = (Clock({P0: offset}) for offset in (10, 20, 30))


@pytest.fixture(params=["memory", "directory", "sqlite"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], SnapshotStore]:
    """Return a function that opens the store again, as another process would."""
    if request.param == "directory":
        return lambda: DirectorySnapshotStore(tmp_path / "snapshots")
    if request.param == "sqlite":
        return lambda: SqliteSnapshotStore(tmp_path / "snapshots.db")
    store = MemorySnapshotStore()
    return lambda: store


def test_a_saved_state_is_loaded(reopen: Callable[[], SnapshotStore]) -> None:
    store = reopen()
    epoch = store.begin_epoch()
    store.save(epoch, "count-0", C1, b"one")
    store.save(epoch, "count-0", C2, b"two")
    store.save(epoch, "count-1", C1, b"")
    store = reopen()
    assert store.clocks("count-0") == [C1, C2]
    assert (store.load("count-0", C1), store.load("count-0", C2), store.load("count-1", C1)) == (b"one", b"two", b"")
    assert store.clocks("never-0") == []
    assert [(it.processor, it.clock, it.epoch, it.size) for it in store.list()] == [
        ("count-0", C1, 1, 3),
        ("count-0", C2, 1, 3),
        ("count-1", C1, 1, 0),
    ]


def test_a_missing_snapshot_is_named(reopen: Callable[[], SnapshotStore]) -> None:
    with pytest.raises(SnapshotError, match=r"count-0 has no .*snapshot at \(words-0: 10\)"):
        reopen().load("count-0", C1)


def test_each_start_has_a_new_epoch(reopen: Callable[[], SnapshotStore]) -> None:
    assert [reopen().begin_epoch() for _ in range(3)] == [1, 2, 3]


def test_a_hung_processor_cannot_save_after_a_new_start(reopen: Callable[[], SnapshotStore]) -> None:
    store = reopen()
    old = store.begin_epoch()
    reopen().begin_epoch()
    with pytest.raises(StaleEpochError, match="a snapshot of count-0 of epoch 1 is refused: epoch 2 has begun"):
        store.save(old, "count-0", C1, b"late")
    assert reopen().clocks("count-0") == []


def test_a_hung_negotiator_cannot_complete_after_a_new_start(reopen: Callable[[], SnapshotStore]) -> None:
    store = reopen()
    old = store.begin_epoch()
    store.save(old, "count-0", C1, b"one")
    new = reopen().begin_epoch()
    store.save(new, "count-0", C2, b"two")
    with pytest.raises(StaleEpochError, match="the complete clock"):
        store.complete(old, C1)
    assert reopen().clocks("count-0") == [C1, C2] and reopen().completed() is None


def test_a_complete_snapshot_replaces_the_others(reopen: Callable[[], SnapshotStore]) -> None:
    store = reopen()
    epoch = store.begin_epoch()
    for clock in (C1, C2, C3):
        store.save(epoch, "count-0", clock, b"state")
    store.save(epoch, "count-1", C2, b"state")
    assert store.completed() is None
    store.complete(epoch, C2)
    assert reopen().completed() == C2
    assert reopen().clocks("count-0") == reopen().clocks("count-1") == [C2]


def test_a_clock_is_saved_again_after_a_failed_round(reopen: Callable[[], SnapshotStore]) -> None:
    store = reopen()
    epoch = store.begin_epoch()
    store.save(epoch, "count-0", C1, b"before")
    store.save(epoch, "count-0", C1, b"after")
    assert C1 in store.clocks("count-0")
    assert store.load("count-0", C1) == b"after"


def fingerprint(**changes: Any) -> dict[str, Any]:
    topology = trending()
    if "parallelism" in changes or "monoid" in changes:
        del topology.nodes["count"]
        bolt = Bolt.keyed(changes.get("monoid", Sum()), key=lambda pair: pair[0], value=lambda pair: pair[1])
        topology.bolt("count", bolt, after="words", parallelism=changes.get("parallelism", 3))
    topology.version = changes.get("version", "1")
    return Processors(topology, {"words": changes.get("partitions", [0, 1])}).fingerprint()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"parallelism": 4}, r"\(count: parallelism 3 in the snapshots, parallelism 4 now\)"),
        ({"version": "2"}, "version: '1' in the snapshots, '2' now"),
        ({"monoid": Mean()}, r"\(count: state MapOf\(Sum\(\)\) in the snapshots, state MapOf\(Mean\(\)\) now\)"),
        ({"monoid": TopN(3)}, r"state MapOf\(TopN\(3\)\) now\)\. Change the topology back, or use an empty store"),
    ],
)
def test_a_changed_topology_is_refused(
    reopen: Callable[[], SnapshotStore], changes: dict[str, Any], problem: str
) -> None:
    reopen().claim(fingerprint())
    reopen().claim(fingerprint())
    with pytest.raises(TopologyError, match=problem):
        reopen().claim(fingerprint(**changes))


WEEK, DAY = 7 * 24 * 3600 * 1000, 24 * 3600 * 1000  # ms


def windowed(windows: WindowsOf, **spout: Any) -> dict[str, Any]:
    """Return the fingerprint of a topology whose only bolt has windows."""
    topology = Topology("windows")
    topology.spout("words", Spout("words", **{"event_time": lambda item: item[1], **spout}))
    topology.bolt("mean", Bolt.windowed(windows, lambda it: it[1], lambda it: it[0], lambda it: 1), after="words")
    return Processors(topology, {"words": [0]}).fingerprint()


@pytest.mark.parametrize(
    "changed",
    [
        Tumbling(DAY, MapOf(Mean())),
        Sliding(WEEK, DAY, MapOf(Mean())),
        Tumbling(WEEK, MapOf(Sum())),
        Sessions(7, Mean()),
    ],
    ids=lambda windows: type(windows).__name__,
)
def test_changed_windows_are_refused(reopen: Callable[[], SnapshotStore], changed: WindowsOf) -> None:
    reopen().claim(windowed(Tumbling(WEEK, MapOf(Mean()))))
    reopen().claim(windowed(Tumbling(WEEK, MapOf(Mean()))))
    problem = rf"mean: state Tumbling\(604800000, MapOf\(Mean\(\)\)\) in the snapshots, state {type(changed).__name__}"
    with pytest.raises(TopologyError, match=problem):
        reopen().claim(windowed(changed))


def test_a_topic_with_more_partitions_is_the_same_topology(reopen: Callable[[], SnapshotStore]) -> None:
    reopen().claim(fingerprint())
    reopen().claim(fingerprint(partitions=[0, 1, 2, 3]))


def test_concurrent_savers_and_starts_agree_on_the_epoch(reopen: Callable[[], SnapshotStore]) -> None:
    """Eight threads begin epochs and save snapshots at the same time. The store refuses a save with an old epoch.

    Each thread begins a new epoch, and saves the number of this epoch as the content of its snapshot. If the store
    lists a snapshot with epoch 5, for example, the content of the snapshot must be 5.
    """
    outcomes: list[str] = []

    def start_and_save(number: int) -> None:
        store = reopen()
        epoch = store.begin_epoch()
        try:
            store.save(epoch, f"count-{number}", C1, str(epoch).encode())
            outcomes.append("stored")
        except StaleEpochError:
            outcomes.append("refused")

    threads = [threading.Thread(target=start_and_save, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(outcomes) == 8 and "stored" in outcomes  # The store accepts at least the snapshot of the newest epoch.
    assert all(store.load(it.processor, C1) == str(it.epoch).encode() for store in [reopen()] for it in store.list())


# -- the directory


def saved(tmp_path: Path, *clocks: Clock) -> tuple[DirectorySnapshotStore, list[Path]]:
    store = DirectorySnapshotStore(tmp_path)
    epoch = store.begin_epoch()
    for clock in clocks:
        store.save(epoch, "count-0", clock, b"a state of some bytes")
    return store, sorted((tmp_path / "count-0").glob("*.snapshot"))


def test_damage_at_every_byte_is_found(tmp_path: Path) -> None:
    store, (path,) = saved(tmp_path, C1)
    intact = path.read_bytes()
    for position in range(len(intact)):
        path.write_bytes(intact[:position] + bytes([intact[position] ^ 0x41]) + intact[position + 1 :])
        assert store.clocks("count-0") == [], position
        with pytest.raises(SnapshotError, match=r"damaged|not a snapshot"):
            store.load("count-0", C1)
    for length in range(len(intact)):
        path.write_bytes(intact[:length])
        assert store.clocks("count-0") == [], length
    (listed,) = store.list()
    assert listed.error and str(path) in listed.error


def test_a_damaged_snapshot_leaves_the_older_one(tmp_path: Path) -> None:
    store, (_, newest) = saved(tmp_path, C1, C2)
    newest.write_bytes(b"HAIL\x01 nonsense")
    assert store.clocks("count-0") == [C1]


def test_a_full_disk_is_an_error_and_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, before = saved(tmp_path, C1)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(directory.os, "fsync", full)
    with pytest.raises(SnapshotError, match=r"count-0: the snapshot at .* cannot be saved: .*No space left"):
        store.save(1, "count-0", C2, b"state")
    assert sorted((tmp_path / "count-0").iterdir()) == before
    monkeypatch.undo()
    store.save(1, "count-0", C2, b"state")
    assert store.clocks("count-0") == [C1, C2]


def test_a_crash_before_the_rename_leaves_no_snapshot(tmp_path: Path) -> None:
    store, _ = saved(tmp_path, C1)
    (tmp_path / "count-0" / "1-crashed.tmp").write_bytes(b"half of a snap")
    assert store.clocks("count-0") == [C1]
    store.begin_epoch()
    assert not list(tmp_path.glob("*/*.tmp"))


def test_a_store_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(SnapshotError, match=r"file/snapshots cannot be made"):
        DirectorySnapshotStore(tmp_path / "file" / "snapshots")


def test_unreadable_notes_are_named(tmp_path: Path) -> None:
    store, _ = saved(tmp_path, C1)
    (tmp_path / "topology.json").write_text("{")
    with pytest.raises(SnapshotError, match=r"topology.json cannot be read.*Restore it from a copy"):
        store.begin_epoch()


def test_a_lock_that_a_hung_process_holds_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "LOCK_TIMEOUT", 0.05)
    store, _ = saved(tmp_path, C1)
    with store._locked(), pytest.raises(SnapshotError, match="has locked the snapshot store"):
        DirectorySnapshotStore(tmp_path).begin_epoch()


def test_the_documented_layout(tmp_path: Path) -> None:
    _, (path,) = saved(tmp_path, C1)
    data = path.read_bytes()
    assert path.name == "00000000000000000001.snapshot"
    assert data.startswith(b"HAIL\x01") and data.endswith(b"a state of some bytes")


# -- SQLite


def test_a_file_that_is_not_a_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("this is not a database, and long enough to be read as a header" * 20)
    with pytest.raises(SnapshotError, match=r"text failed: file is not a database"):
        SqliteSnapshotStore(tmp_path / "text")


def test_a_full_database_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteSnapshotStore(tmp_path / "snapshots.db")
    epoch = store.begin_epoch()
    connect = sqlite3.connect

    def small(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.execute("PRAGMA max_page_count=1")
        return connection

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(SnapshotError, match="full"):
        store.save(epoch, "count-0", C1, bytes(100_000))
    monkeypatch.undo()
    assert store.clocks("count-0") == []


def test_two_saves_of_one_processor_at_one_moment_both_succeed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two saves of one processor at the same moment do not disturb each other.

    Both saves have written their temporary files before the first save renames its file.
    """
    store = DirectorySnapshotStore(tmp_path / "snapshots")
    epoch = store.begin_epoch()
    barrier, sync = threading.Barrier(2), os.fsync

    def sync_together(descriptor: int) -> None:
        sync(descriptor)
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            barrier.wait(10.0)

    monkeypatch.setattr(directory.os, "fsync", sync_together)
    errors: list[SnapshotError] = []

    def save(clock: Clock) -> None:
        try:
            store.save(epoch, "count-0", clock, b"state")
        except SnapshotError as error:
            errors.append(error)

    threads = [threading.Thread(target=save, args=(clock,)) for clock in (C1, C2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert set(store.clocks("count-0")) == {C1, C2}
    assert not list((tmp_path / "snapshots").glob("*/*.tmp"))
