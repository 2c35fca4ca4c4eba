"""A test of the recovery benchmark's log: a broker that recovers this log keeps every batch."""

from __future__ import annotations

from pathlib import Path

from hmb.bench.logs import unclean
from hmb.storage.config import LogConfig
from hmb.storage.log import Log


def test_recovery_keeps_all_batches_and_the_producer_state(tmp_path: Path) -> None:
    directory = tmp_path / "events-0"
    directory.mkdir()
    end = unclean.write(directory, 50_000, 1_000)
    size = (directory / f"{0:020d}.log").stat().st_size
    log = Log(directory, LogConfig(), clean=False)
    assert (log.log_end_offset, log.size) == (end, size) and 48_000 < size <= 50_000
