"""Writes some thousand records through an unreliable network.

The command `python -m tests.conformance.exactly_once` does the same with more records.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hmb.bench import peers
from tests.conformance.exactly_once import run, run_transactions


@pytest.mark.external
@pytest.mark.slow
def test_each_record_is_written_once_and_in_order(tmp_path: Path) -> None:
    told = run(peers.Hmb(tmp_path / "hmb"), 20_000, seed=3)
    for trouble in ("cut", "copied"):
        assert trouble in told, told


@pytest.mark.external
@pytest.mark.slow
def test_each_transaction_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    told = run_transactions(peers.Hmb(tmp_path / "hmb"), 9_000, seed=3)
    assert "cut" in told, told
