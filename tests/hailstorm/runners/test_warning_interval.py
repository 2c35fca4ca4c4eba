"""Test of the limit for repeated warnings."""

from __future__ import annotations

import time

import pytest

from hmb.hailstorm.runners.warning_interval import INTERVAL, WarningInterval


def test_a_warning_repeats_only_after_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    interval = WarningInterval()
    assert [interval.is_due(), interval.is_due()] == [True, False]
    now += INTERVAL
    assert interval.is_due()
