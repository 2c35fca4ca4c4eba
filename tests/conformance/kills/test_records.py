"""Kills the broker a few times under load. `records.py --kills 20` is a longer run of this test."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hmb.bench import peers
from tests.conformance.kills.records import run


@pytest.mark.external
@pytest.mark.slow
def test_acknowledged_records_survive_kills(tmp_path: Path) -> None:
    starts = run(peers.Hmb(tmp_path / "hmb"), 3, random.Random(3))
    assert len(starts) == 3
