"""Runs the hostile client for a short time. `python -m tests.reliability.hostile` runs it in full."""

from __future__ import annotations

from pathlib import Path

import pytest

from hmb.protocol import primitives
from tests.reliability import hostile


def test_a_broker_survives_mutated_requests_requests_of_full_size_and_silent_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker survives changed requests, requests of 100 MB, and silent connections.

    It logs no traceback, serves other clients, and uses no more memory than its limit.
    """
    # `run` raises this limit, and pytest restores it.
    monkeypatch.setattr(primitives, "LONGEST_STRING", primitives.LONGEST_STRING)
    monkeypatch.setattr(hostile, "LIMIT", 20.0)  # seconds; a busy machine delays even a correct broker
    report = hostile.run(tmp_path, requests=1_000, connections=10, silent=100, seed=3)
    assert not report.faults, "\n".join(report.lines)
