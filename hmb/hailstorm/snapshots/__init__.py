"""Snapshot stores: the places that keep the states of processors after a crash.

A snapshot is the state of one processor, as bytes. The state includes exactly the records below a *clock*, which
contains one offset for each partition that the topology reads. The method `save` of a store returns after the bytes are
on disk. When every processor has reported that it has saved a snapshot with the same clock, the negotiator, which
controls the processors, marks this clock as complete. Only then does the store delete the snapshots with older clocks.

A store keeps three values for the whole topology. A new negotiator (the part of Hailstorm that controls snapshots and
restarts) reads these values, so it can continue the work of the previous negotiator:
    fingerprint   a description of the topology, for example its nodes and the kinds of its bolts' states. The store
                  refuses a topology with another fingerprint, because this topology could not use the snapshots.
    epoch         the number of the last start of the topology. The store refuses writes from an older start.
    completed     the newest offsets (one for each partition) at which all processors have saved a snapshot. A restart
                  must not begin at older offsets.

The epoch protects the snapshots against a processor that hangs. Suppose that a processor hangs during a save. The
topology recovers without this processor, and begins a new epoch. If the processor then continues its save, its snapshot
belongs to the old epoch, and must not be used. A store therefore checks the epoch and adds the snapshot in one step,
and refuses a snapshot of an old epoch.

All processors of a topology use one store: a database, or a directory that all processors can reach.
`DirectorySnapshotStore` corresponds to DirSnapshotStore in the Hailstorm paper. The paper also suggests an SQL
database. `SqliteSnapshotStore` is such a store.

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
    """Return the store at a path: SQLite if the file name ends in `.db` or `.sqlite`, otherwise a directory."""
    if Path(location).suffix in (".db", ".sqlite"):
        return SqliteSnapshotStore(location)
    return DirectorySnapshotStore(location)
