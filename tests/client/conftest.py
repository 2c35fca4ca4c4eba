"""A fixture for the tests of the client: one broker for each test module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import hmb


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    config = {"num.partitions": "3", "log.flush.acks.all": "false", "group.initial.rebalance.delay.ms": "0"}
    with hmb.Broker(config=config) as broker:
        yield broker.bootstrap_servers
