"""Tests Hailstorm with a few short runs in which processes or threads are killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hailstorm.kills.runs import quiet, run


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(6))
def test_kills_at_random_moments_change_no_result(seed: int, tmp_path: Path) -> None:
    with quiet():
        figures = run(seed, tmp_path, processes=seed % 3 == 2)
    assert figures.snapshots >= 1 and figures.epochs >= 1
