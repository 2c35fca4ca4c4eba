"""Tests that some thousand records arrive exactly once through an unreliable network.

The command `python -m tests.conformance.exactly_once` runs the same tests with more records.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hmb.bench import peers
from tests.conformance.exactly_once import run, run_transactions


@pytest.mark.external
@pytest.mark.slow
def test_each_record_is_written_once_and_in_order(tmp_path: Path) -> None:
    report = run(peers.Hmb(tmp_path / "hmb"), 20_000, seed=3)
    for trouble in ("cut", "copied"):
        assert trouble in report, report


@pytest.mark.external
@pytest.mark.slow
def test_all_or_none_of_a_transaction_is_written(tmp_path: Path) -> None:
    report = run_transactions(peers.Hmb(tmp_path / "hmb"), 9_000, seed=3)
    assert "cut" in report, report
