"""Fixtures that find the jars of Kafka. If the jars are missing, the tests that need them are skipped."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from hmb.bench import peers


@pytest.fixture(scope="session")
def kafka_43() -> Path:
    """Return the folder with the jars of Kafka 4.3.0.

    The environment variable HMB_KAFKA_43 names this folder. The default is in `.peers/` (filled by `hmb bench
    fetch-kafka`).
    """
    return peers.kafka_43_jars()


@pytest.fixture(scope="session")
def kafka_082() -> Path:
    """Return the folder with the jars of Kafka 0.8.2.2: the value of HMB_KAFKA_082, or a folder in `.peers/`."""
    return peers.kafka_082_jars()


def skipping() -> Generator[None, object, object]:
    try:
        return (yield)
    except peers.PeerUnavailable as missing:
        pytest.skip(str(missing))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from skipping())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from skipping())
