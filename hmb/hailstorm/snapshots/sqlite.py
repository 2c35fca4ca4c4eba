"""Snapshots in one SQLite file.

The database has two tables. A *clock* is a position in the input of the topology: one offset for each partition. The
module `hmb.hailstorm.codec` encodes clocks and states as bytes.
    topology    one row: fingerprint (a description of the topology, as JSON), epoch (the number of the
                topology's last start), completed (the clock of the newest snapshot that all processors have saved)
    snapshot    one row for each snapshot of a processor: number, processor, clock, epoch, state

The store checks the epoch and inserts the snapshot in one SQLite transaction, so no new epoch can begin between
the check and the insert. With `PRAGMA synchronous=FULL`, SQLite syncs each transaction to the disk.

Only the thread that opened an SQLite connection can use it. The store therefore opens a new connection for each
operation. Opening a connection takes 0.1 ms.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from hmb.hailstorm.clock import Clock
from hmb.hailstorm.codec import decode, encode
from hmb.hailstorm.errors import SnapshotError
from hmb.hailstorm.snapshots.store import Fingerprint, SnapshotListing, check_epoch, check_fingerprint

TIMEOUT = 10.0  # the longest time (seconds) that a transaction waits for the lock of the database
SCHEMA = """
CREATE TABLE IF NOT EXISTS topology (only INTEGER PRIMARY KEY CHECK (only = 1), fingerprint TEXT,
                                     epoch INTEGER NOT NULL, completed BLOB);
INSERT OR IGNORE INTO topology VALUES (1, NULL, 0, NULL);
CREATE TABLE IF NOT EXISTS snapshot (number INTEGER PRIMARY KEY AUTOINCREMENT, processor TEXT NOT NULL,
                                     clock BLOB NOT NULL, epoch INTEGER NOT NULL, state BLOB NOT NULL);
"""


class SqliteSnapshotStore:
    """A snapshot store in an SQLite file. All processes of one machine can use it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.location = str(self.path.absolute())  # the path with which another process opens this store
        with self._connection() as connection:
            connection.executescript(SCHEMA)

    def claim(self, fingerprint: Fingerprint) -> None:
        with self._transaction() as connection:
            (known,) = connection.execute("SELECT fingerprint FROM topology").fetchone()
            check_fingerprint(known and json.loads(known), fingerprint, str(self.path))
            connection.execute("UPDATE topology SET fingerprint = ?", (json.dumps(fingerprint),))

    def begin_epoch(self) -> int:
        with self._transaction() as connection:
            (epoch,) = connection.execute("UPDATE topology SET epoch = epoch + 1 RETURNING epoch").fetchone()
        return int(epoch)

    def completed(self) -> Clock | None:
        with self._connection() as connection:
            (noted,) = connection.execute("SELECT completed FROM topology").fetchone()
        return None if noted is None else Clock.from_value(decode(noted))

    def complete(self, epoch: int, clock: Clock) -> None:
        noted = encode(clock.to_value())
        with self._transaction() as connection:
            self._check_epoch(connection, epoch, f"the complete clock {clock}")
            connection.execute("UPDATE topology SET completed = ?", (noted,))
            connection.execute("DELETE FROM snapshot WHERE clock != ?", (noted,))

    def save(self, epoch: int, processor: str, clock: Clock, state: bytes) -> None:
        noted = encode(clock.to_value())
        with self._transaction() as connection:
            self._check_epoch(connection, epoch, f"a snapshot of {processor}")
            connection.execute("DELETE FROM snapshot WHERE processor = ? AND clock = ?", (processor, noted))
            connection.execute(
                "INSERT INTO snapshot (processor, clock, epoch, state) VALUES (?, ?, ?, ?)",
                (processor, noted, epoch, state),
            )

    def clocks(self, processor: str) -> list[Clock]:
        with self._connection() as connection:
            rows = connection.execute(
                "SELECT clock FROM snapshot WHERE processor = ? ORDER BY number", (processor,)
            ).fetchall()
        return [Clock.from_value(decode(clock)) for (clock,) in rows]

    def load(self, processor: str, clock: Clock) -> bytes:
        with self._connection() as connection:
            row = connection.execute(
                "SELECT state FROM snapshot WHERE processor = ? AND clock = ?", (processor, encode(clock.to_value()))
            ).fetchone()
        if row is None:
            raise SnapshotError(f"{processor} has no snapshot at {clock} in {self.path}")
        return bytes(row[0])

    def list(self) -> list[SnapshotListing]:
        with self._connection() as connection:
            rows = connection.execute(
                "SELECT processor, clock, epoch, length(state) FROM snapshot ORDER BY processor, number"
            ).fetchall()
        return [
            SnapshotListing(name, Clock.from_value(decode(clock)), epoch, size) for name, clock, epoch, size in rows
        ]

    @staticmethod
    def _check_epoch(connection: sqlite3.Connection, epoch: int, what: str) -> None:
        (newest,) = connection.execute("SELECT epoch FROM topology").fetchone()
        check_epoch(newest, epoch, what)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Open a connection and begin a write transaction, which commits at the end of the `with` block."""
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            with connection:
                yield connection

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=TIMEOUT, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous=FULL")
                yield connection
        except sqlite3.Error as error:
            raise SnapshotError(f"the snapshot store {self.path} failed: {error}") from error
