"""Show a running mirror: as a live table on a terminal, or as JSON lines for a script."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from ..shared.output import print_json

if TYPE_CHECKING:
    from hmb.mirror.resuming import MirroredPartition
    from hmb.mirror.session import Mirror


class MirrorDisplay:
    """Shows the progress of a mirror, at most once in `interval` seconds.

    The displayed rate (records/s) is the average since the previous display.
    """

    def __init__(self, mirror: Mirror, *, as_json: bool, live: Live | None, interval: float) -> None:
        self._mirror, self._as_json, self._live, self._interval = mirror, as_json, live, interval
        self._started = self._shown_at = time.monotonic()
        self._records = 0
        self._rate = 0.0

    def update(self) -> None:
        """Show the progress, unless it was shown less than `interval` seconds ago."""
        now = time.monotonic()
        elapsed = now - self._shown_at
        if elapsed < self._interval:
            return
        records = sum(it.records for it in self._mirror.partitions.values())
        self._rate = max(records - self._records, 0) / elapsed
        self._records, self._shown_at = records, now
        if self._as_json:
            print_json({"type": "progress"} | self.totals())
        elif self._live is not None:
            self._live.update(self._table(), refresh=True)

    def totals(self) -> dict[str, Any]:
        """Return the sums over all partitions: records, bytes, records per second and lag."""
        partitions = self._mirror.partitions.values()
        return {
            "records": sum(it.records for it in partitions),
            "bytes": sum(it.bytes for it in partitions),
            "records_per_second": round(self._rate),
            "lag": sum(it.lag for it in partitions),
        }

    def summary(self) -> dict[str, Any]:
        """Return the result of the whole run: records, bytes, lag, and the average number of records per second."""
        totals = self.totals()
        return totals | {"records_per_second": round(totals["records"] / max(time.monotonic() - self._started, 0.001))}

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("topic")
        for column in ("records", "MB", "lag"):
            table.add_column(column, justify="right")
        table.add_column("offsets")
        topics: dict[str, list[MirroredPartition]] = {}
        for it in self._mirror.partitions.values():
            topics.setdefault(it.source.topic, []).append(it)
        for name, its in topics.items():
            records, size, lag = (sum(getattr(it, key) for it in its) for key in ("records", "bytes", "lag"))
            kept = sum(it.keeps_offsets for it in its)
            offsets = "kept" if kept == len(its) else f"translated in {len(its) - kept} of {len(its)} partitions"
            table.add_row(name, f"{records:,}", f"{size / 1e6:,.1f}", f"{lag:,}", offsets)
        table.add_row(f"{self._rate:,.0f} records/s")
        return table


def print_partitions(mirror: Mirror) -> None:
    """Print one JSON line for each partition, and one JSON line for each committed offset of each group."""
    for it in mirror.partitions.values():
        print_json(
            {"type": "partition"}
            | it.source._asdict()
            | {
                "target": it.target.topic,
                "position": it.position,
                "records": it.records,
                "lag": it.lag,
                "offsets": "kept" if it.keeps_offsets else "translated",
            }
        )
    for each in mirror.group_offsets.values():
        print_json(
            {"type": "group", "group": each.group}
            | each.partition._asdict()
            | {"offset": each.offset, "target": each.target.topic, "target_offset": each.target_offset}
        )


def live_on(console: Console) -> Live:
    return Live(console=console, auto_refresh=False, transient=True)
