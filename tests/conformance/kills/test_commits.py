"""Kills the broker a few times while groups commit. `commits.py --kills 20` is a longer run of this test."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hmb.bench import peers
from tests.conformance.kills.commits import GROUPS, run


@pytest.mark.external
@pytest.mark.slow
def test_committed_offsets_never_decrease(tmp_path: Path) -> None:
    assert run(peers.Hmb(tmp_path / "hmb"), 3, random.Random(3)) > 3 * GROUPS
