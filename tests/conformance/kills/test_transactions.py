"""Kills the broker a few times during transactions. `transactions.py --kills 20` is a longer run of this test."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hmb.bench import peers
from tests.conformance.kills.transactions import run


@pytest.mark.external
@pytest.mark.slow
def test_readers_see_all_or_none_of_a_transaction(tmp_path: Path) -> None:
    assert run(peers.Hmb(tmp_path / "hmb"), 2, random.Random(3)) > 2
