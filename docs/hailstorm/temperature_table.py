"""Write weekly mean temperatures of cities to an SQLite table: crashes neither lose nor repeat a mean."""

from temperatures import mean_of_weeks, temperature

from hmb.hailstorm import Bolt, Spout, SqliteTarget, Topology, TransactionalSink

CREATE = "CREATE TABLE IF NOT EXISTS means (city TEXT, week INTEGER, mean REAL, PRIMARY KEY (city, week))"
REPLACE = "INSERT OR REPLACE INTO means VALUES (?, ?, ?)"


def row(output: tuple[tuple[str, int], float]) -> list[tuple[str, int, float]]:
    """Return the row for an output of the windowed bolt: ((city, week), mean) becomes (city, week, mean)."""
    (city, week), mean = output
    return [(city, week, mean)]


topology = Topology("temperature_table")
topology.spout("weather", Spout("weather", temperature, event_time=lambda item: item[1]))
topology.bolt("mean", mean_of_weeks, after="weather", parallelism=2)
topology.bolt("rows", Bolt.stateless(row), after="mean")
topology.sink("table", TransactionalSink(lambda: SqliteTarget("means.db", REPLACE, CREATE)), after="rows")
