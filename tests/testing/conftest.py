"""Fixtures for the tests of `hmb.testing`: an embedded broker and its faults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import hmb
from hmb.testing.faults.requests import Faults


@pytest.fixture
def broker() -> Iterator[hmb.Broker]:
    with hmb.Broker() as broker:
        yield broker


@pytest.fixture
def faults(broker: hmb.Broker) -> Iterator[Faults]:
    with broker.faults as faults:
        yield faults


@pytest.fixture
def run(pytester: pytest.Pytester) -> pytest.Pytester:
    """Return a directory in which a test can run pytest. pytest loads the plugin through its entry point."""
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider\n")
    return pytester
