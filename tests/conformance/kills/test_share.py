"""The test kills consumers of a share group and their broker. `share.py --kills 20` is a longer run of this test."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hmb.bench import peers
from tests.conformance.kills.share import SETTINGS, run


@pytest.mark.external
@pytest.mark.slow
def test_a_share_group_processes_every_record(tmp_path: Path) -> None:
    found = run(peers.Hmb(tmp_path / "hmb", config=SETTINGS), 4, random.Random(5), per_kill=1_000)
    assert set(found) == set(range(4_000))
