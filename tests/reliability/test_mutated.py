"""Sends a few thousand mutated requests. The command `python -m tests.reliability.mutated` sends 10 million."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reliability import mutated


def test_mutated_requests_before_and_after_the_login_cause_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutated, "LIMIT", 20.0)  # seconds; a busy machine delays even a correct broker
    figures = mutated.run(tmp_path, requests=3_000, seconds=60, seed=11)
    assert not figures.faults, "\n".join([*figures.lines(), *figures.faults])
    assert figures.total > 0 and min(figures.outcomes["answered"], figures.outcomes["closed"]) > 0
