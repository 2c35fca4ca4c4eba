"""The log that the benchmark compacts is one that a broker takes, and what should be left of it is."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from hmb.bench import peers
from hmb.bench.scenarios import compaction
from hmb.records import Codec
from hmb.storage.cleaner import Throttle, clean, cleanable
from hmb.storage.config import LogConfig
from hmb.storage.log import Log

NOW = 2_000_000_000_000
CONFIG = LogConfig(cleanup_policy="compact", segment_bytes=compaction.SEGMENT_BYTES)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_a_round_leaves_one_record_of_each_key(tmp_path: Path, codec: Codec) -> None:
    original = compaction.write(tmp_path / "original", 200_000, codec)
    broker = peers.Hmb(tmp_path)
    directory = broker.data_dir / f"{compaction.TOPIC}-0"
    directory.mkdir(parents=True)
    (directory / f"{0:020d}.log").write_bytes(b"what the broker made")
    compaction.put(original, directory)
    log = Log(directory, CONFIG, clean=True)
    work = cleanable(log, 0, NOW)
    assert work is not None
    with pytest.raises(peers.PeerFailed, match="records of"):
        compaction.left(broker, original)
    throttle = Throttle(float("inf"), threading.Event())
    assert clean(log, work, max_memory=1_000_000, now=NOW, throttle=throttle) == original.end
    assert 0 < compaction.left(broker, original) < original.size


def test_the_cpu_time_of_a_process_grows() -> None:
    before = peers.cpu_seconds(os.getpid())
    while peers.cpu_seconds(os.getpid()) == before:
        pass
    assert 0 <= before < peers.cpu_seconds(os.getpid())
