"""Tests of the compaction benchmark's log: a broker compacts this log, and the benchmark checks the result."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hmb.bench import peers
from hmb.bench.logs.compactable import SEGMENT_BYTES, compacted_bytes, put, write
from hmb.records import Codec
from hmb.storage.compaction.cleaner import clean, cleanable
from hmb.storage.compaction.throttle import Throttle
from hmb.storage.config import LogConfig
from hmb.storage.log import Log

NOW = 2_000_000_000_000
CONFIG = LogConfig(cleanup_policy="compact", segment_bytes=SEGMENT_BYTES)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_a_compaction_leaves_one_record_of_each_key(tmp_path: Path, codec: Codec) -> None:
    original = write(tmp_path / "original", 200_000, codec)
    directory = tmp_path / "events-0"
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(b"written by the broker")
    put(original.directory, directory)
    log = Log(directory, CONFIG, clean=True)
    work = cleanable(log, 0, NOW)
    assert work is not None
    with pytest.raises(peers.PeerFailed, match="records of"):
        compacted_bytes(original, directory)
    throttle = Throttle(float("inf"), threading.Event())
    assert clean(log, work, max_memory=1_000_000, now=NOW, throttle=throttle) == original.end
    assert 0 < compacted_bytes(original, directory) < original.size
