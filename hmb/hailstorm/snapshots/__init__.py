"""Snapshot stores: where the states of processors survive a crash.

A snapshot is the state of one processor at one clock, as bytes. `save` returns when the bytes are on disk: the
negotiator calls a snapshot complete as soon as every processor has reported its save, and after that the older
snapshots are deleted.

A store keeps three more values for the whole topology, so that a new negotiator can continue the work of its
predecessor:

    fingerprint   the shape of the topology that the snapshots belong to: the store refuses any other topology
    epoch         the number of the last start: the store refuses `save` and `complete` of an older epoch
    completed     the newest complete clock: a start must not begin with an older one

The epoch is a fence. Suppose that a processor hangs in the middle of a save, and continues when the topology has
recovered without it. It must not add its snapshot, whose clock would look newer than the clock of the recovery. A store
therefore checks the epoch and adds the snapshot in one step.

All processors of a topology use one store: a directory that all can reach, or a database. The paper's DirSnapshotStore
is `DirectorySnapshotStore`; the SQL database that the paper suggests is `SqliteSnapshotStore`.

Read in this order:

- `store`       `SnapshotStore`, the operations
- `memory`      in memory, for tests and for topologies that can start from the beginning
- `directory`   one file for each snapshot: write, sync, rename
- `sqlite`      one database file

Source: Hailstorm, chapter 3.4.3, "Saving and restoring snapshots".
"""

from pathlib import Path

from hmb.hailstorm.snapshots.directory import DirectorySnapshotStore
from hmb.hailstorm.snapshots.memory import MemorySnapshotStore
from hmb.hailstorm.snapshots.sqlite import SqliteSnapshotStore
from hmb.hailstorm.snapshots.store import SnapshotListing, SnapshotStore

__all__ = [
    "DirectorySnapshotStore",
    "MemorySnapshotStore",
    "SnapshotListing",
    "SnapshotStore",
    "SqliteSnapshotStore",
    "open_store",
]


def open_store(location: str | Path) -> SnapshotStore:
    """Return the store at a path: SQLite for a file name that ends in `.db` or `.sqlite`, otherwise a directory."""
    if Path(location).suffix in (".db", ".sqlite"):
        return SqliteSnapshotStore(location)
    return DirectorySnapshotStore(location)
