"""Snapshot stores: they save the states of a topology's processors, so that a crash does not lose these states.

A *snapshot* contains the state of one processor as bytes. Each snapshot has a *clock*, which contains one
offset for each partition that the topology reads. The state includes exactly the records below these offsets.
The method `save` returns when the bytes are on disk (in a `MemorySnapshotStore`: in memory).

The *negotiator* controls the snapshots. It waits until all processors that save snapshots have saved a snapshot
with the same clock. Only then does it call `complete`, and the store deletes all snapshots with other clocks.

A store also contains three values for the whole topology, which the topology needs after a restart:
    fingerprint   a description of the topology, for example its nodes and the kind of each bolt's state. A
                  topology with another fingerprint could not use the snapshots, so the store refuses it.
    epoch         a number that increases by 1 at each start of the topology. The store refuses `save` and
                  `complete` if the caller still belongs to an older start.
    completed     one offset for each partition: the newest offsets at which all processors have saved a
                  snapshot. After a restart, the topology must not continue at older offsets.

An *epoch* is the time from one start of the topology to its next start. A store refuses snapshots of an old
epoch. For example, a processor hangs while it saves a snapshot. The topology restarts without this processor,
so a new epoch begins. When the processor continues, the store refuses its snapshot. The store checks the epoch
and adds a snapshot in one step, so no new epoch can begin between the check and the addition.

All processors of a topology use the same store: a database, or a directory that all of them can reach. The
Hailstorm paper describes a directory (DirSnapshotStore), and suggests an SQL database as an alternative. In
HMB, these two stores are `DirectorySnapshotStore` and `SqliteSnapshotStore`.

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
