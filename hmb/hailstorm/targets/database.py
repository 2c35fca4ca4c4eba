"""Databases as targets: one transaction of a DB-API connection (PEP 249) writes the outputs and the clock.

Besides the user's tables, the database contains the table `hailstorm_clock`, with one row for each sink:
    sink (text, primary key)   epoch (integer)   clock (text: JSON [[topic, partition, offset]])

When a sink starts, `open` writes the epoch of this start to the row of the sink. If the row still has the epoch of this
start, `write` later updates the clock in this row, in the same transaction as the outputs. If a newer start has
replaced the epoch, the older sink rolls its transaction back and ends.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from hmb.client import TopicPartition
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.errors import StaleEpochError

# PEP 249 lets each database module choose how a statement marks a parameter. This dict maps each supported style to its
# marker. The rare styles "numeric" and "named" are not supported.
MARKERS = {"qmark": "?", "format": "%s", "pyformat": "%s"}
CREATE = "CREATE TABLE IF NOT EXISTS hailstorm_clock (sink VARCHAR(200) PRIMARY KEY, epoch INTEGER, clock TEXT)"


class DatabaseTarget:
    """A database that the sink reaches through a DB-API connection.

    connect     makes a connection; transactions begin implicitly, as PEP 249 requires
    insert      writes outputs with a cursor, for example `cursor.executemany("INSERT ...", tuples)`; must not commit
    paramstyle  the style of parameter markers in the DB-API module: "qmark", "format" or "pyformat"
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        insert: Callable[[Any, Sequence[Any]], object],
        paramstyle: Literal["qmark", "format", "pyformat"] = "qmark",
    ) -> None:
        self._connection = connect()
        self._insert, self._marker = insert, MARKERS[paramstyle]
        self._sink, self._epoch = "", 0

    def open(self, sink: str, epoch: int) -> Clock | None:
        self._sink, self._epoch = sink, epoch
        try:
            row = self._claim()
        except BaseException:
            self._connection.rollback()
            raise
        self._connection.commit()
        return _clock(row)

    def write(self, tuples: Sequence[Any], clock: Clock) -> None:
        try:
            cursor = self._connection.cursor()
            changed = self._execute(
                cursor,
                "UPDATE hailstorm_clock SET clock = ? WHERE sink = ? AND epoch = ?",
                (json.dumps(clock.to_value()), self._sink, self._epoch),
            )
            if changed != 1:
                what = f"{self._sink}: outputs of epoch {self._epoch} are refused"
                raise StaleEpochError(f"{what}: a newer epoch has begun")
            if tuples:
                self._insert(cursor, tuples)
            cursor.close()
        except BaseException:
            self._connection.rollback()
            raise
        self._connection.commit()

    def close(self) -> None:
        self._connection.close()

    def _claim(self) -> str | None:
        """Write the epoch of this start to the sink's row, and return the clock in this row as JSON, or None."""
        cursor = self._connection.cursor()
        cursor.execute(CREATE)
        self._execute(cursor, "SELECT epoch, clock FROM hailstorm_clock WHERE sink = ?", (self._sink,))
        found = cursor.fetchone()
        if found is None:
            self._execute(cursor, "INSERT INTO hailstorm_clock VALUES (?, ?, NULL)", (self._sink, self._epoch))
            return None
        newest, noted = found
        if newest > self._epoch:
            raise StaleEpochError(f"{self._sink}: epoch {self._epoch} is refused: epoch {newest} has begun")
        self._execute(cursor, "UPDATE hailstorm_clock SET epoch = ? WHERE sink = ?", (self._epoch, self._sink))
        cursor.close()
        return str(noted) if noted is not None else None

    def _execute(self, cursor: Any, statement: str, values: tuple[Any, ...]) -> int:
        """Run a statement, and return the number of rows that it changed."""
        cursor.execute(statement.replace("?", self._marker), values)
        changed: int = cursor.rowcount
        return changed


class SqliteTarget(DatabaseTarget):
    """An SQLite file. The target executes `statement` for each output. An output is a tuple of parameters.

    When the target is opened, it executes `setup` once, for example `CREATE TABLE IF NOT EXISTS ...`.
    """

    def __init__(self, path: str | Path, statement: str, setup: str = "") -> None:
        def connect() -> sqlite3.Connection:
            connection = sqlite3.connect(path, timeout=30)
            connection.executescript(setup)
            return connection

        super().__init__(connect, lambda cursor, tuples: cursor.executemany(statement, tuples))


def _clock(noted: str | None) -> Clock | None:
    if noted is None:
        return None
    return Clock((TopicPartition(topic, partition), offset) for topic, partition, offset in json.loads(noted))
