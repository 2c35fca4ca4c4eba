"""Writes a sink's outputs and input offsets to a database, in one transaction of the DB-API (PEP 249).

Besides the user's tables, the database contains the table `hailstorm_clock`, with one row for each sink instance:
    sink (text, primary key)   epoch (integer)   clock (text: JSON [[topic, partition, offset]])
    trending/out-0             3                 [["words", 0, 1200]]

A row's key is the name of the topology and the name of the sink instance, so several topologies can share a database.
The column `epoch` counts how often the sink instance was started. The topology has an epoch, too, but that number
begins at 1 again with a new snapshot store, so the table does not use it.

The column `epoch` stops an old instance of a sink after a new instance has started. When an instance starts,
`open` adds 1 to the epoch in the sink's row. When an instance writes outputs, `write` checks in the same
transaction that the epoch has not changed. If a newer instance has changed the epoch, `write` rolls the
transaction back, and the old instance ends.

Early development versions used only the name of the sink instance as a row's key, for example `out-0`. The
method `open` replaces such a key with the new key, for example `trending/out-0`, if two conditions are true:

- The topology still reads every topic in the row's column `clock`.
- In each partition in this column, the topology starts at the stored offset or above.
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

# A placeholder marks a parameter in an SQL statement. Each database module chooses its style (PEP 249). The dict maps
# each supported style to its placeholder. The rare styles "numeric" and "named" are not supported.
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

    def open(self, topology: str, sink: str, start: Clock) -> Clock | None:
        self._sink = f"{topology}/{sink}"
        try:
            cursor = self._connection.cursor()
            cursor.execute(CREATE)
            clock = self._claim(cursor) or self._adopt(cursor, sink, start)
            cursor.close()
        except BaseException:
            self._connection.rollback()
            raise
        self._connection.commit()
        return clock

    def write(self, tuples: Sequence[Any], clock: Clock) -> None:
        try:
            cursor = self._connection.cursor()
            changed = self._execute(
                cursor,
                "UPDATE hailstorm_clock SET clock = ? WHERE sink = ? AND epoch = ?",
                (json.dumps(clock.to_value()), self._sink, self._epoch),
            )
            if changed != 1:
                raise StaleEpochError(f"{self._sink} must not write outputs: a newer instance of this sink has started")
            if tuples:
                self._insert(cursor, tuples)
            cursor.close()
        except BaseException:
            self._connection.rollback()
            raise
        self._connection.commit()

    def close(self) -> None:
        self._connection.close()

    def _claim(self, cursor: Any) -> Clock | None:
        """Add 1 to the epoch of this sink instance. Return the clock of the sink instance, or None if it has no clock.

        The epoch counts how often the sink instance has started. The clock contains one offset for each partition. The
        outputs of all records below these offsets are already in the database.

        The method first updates the row of the sink instance, or adds the row if it does not exist. It reads the row
        afterwards. The update locks the row until the transaction ends.
        """
        row = (self._sink,)
        if not self._execute(cursor, "UPDATE hailstorm_clock SET epoch = epoch + 1 WHERE sink = ?", row):
            self._execute(cursor, "INSERT INTO hailstorm_clock VALUES (?, 1, NULL)", row)
        self._execute(cursor, "SELECT epoch, clock FROM hailstorm_clock WHERE sink = ?", row)
        self._epoch, clock = cursor.fetchone()
        return _clock(clock)

    def _adopt(self, cursor: Any, sink: str, start: Clock) -> Clock | None:
        """Return the clock that an early version of Hailstorm stored for this sink instance, or None.

        A clock contains one offset for each partition. Early versions stored it under the key `sink`, the name of the
        sink instance. The new key also contains the name of the topology.

        The topology now starts at the clock `start`. There are three cases:

        - No clock is stored under the old key, or the clock contains a topic that is not in `start`. The method returns
          None.
        - No offset in the stored clock is greater than the offset in `start`. The method moves the clock to the new
          key, and returns it.
        - Otherwise, the method only returns the stored clock. The sink then refuses to start, because the target
          already contains outputs of records that the topology would read again.
        """
        self._execute(cursor, "SELECT clock FROM hailstorm_clock WHERE sink = ?", (sink,))
        found = cursor.fetchone()
        clock = _clock(found[0]) if found is not None else None
        if clock is None or not {each.topic for each in clock} <= {each.topic for each in start}:
            return None
        if all(offset <= start.get(partition, 0) for partition, offset in clock.items()):
            self._execute(cursor, "UPDATE hailstorm_clock SET clock = ? WHERE sink = ?", (found[0], self._sink))
            self._execute(cursor, "DELETE FROM hailstorm_clock WHERE sink = ?", (sink,))
        return clock

    def _execute(self, cursor: Any, statement: str, values: tuple[Any, ...]) -> int:
        """Run a statement, and return the number of rows that it changed."""
        cursor.execute(statement.replace("?", self._marker), values)
        changed: int = cursor.rowcount
        return changed


class SqliteTarget(DatabaseTarget):
    """A target that writes to an SQLite file. It executes one SQL statement for each output.

    path        the file; the target creates it if it does not exist
    statement   the SQL statement, with one `?` for each item of an output; each output is a tuple
    setup       SQL statements that the target executes when it starts, for example `CREATE TABLE IF NOT EXISTS ...`
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
