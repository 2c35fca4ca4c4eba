"""Tests of the committers with an embedded broker: they count exactly the commits that the broker has stored."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from hmb import Broker
from hmb.bench import peers
from hmb.bench.load.committers import commit, prepare


@pytest.fixture
def peer() -> Iterator[Any]:
    with Broker(config={"log.flush.acks.all": "false", "offsets.topic.num.partitions": "2"}) as broker:
        address = broker.bootstrap_servers
        port = int(address.split(":")[1])
        yield SimpleNamespace(name="embedded", bootstrap=address, port=port, pid=os.getpid())


def test_a_run_is_checked_against_the_committed_offsets(peer: Any) -> None:
    prepare(peer, 3)
    rates = commit(peer, 3, 4, 0.2)
    assert rates.commits_per_second > 0 and 0 < rates.p50_ms <= rates.p99_ms


def test_an_error_ends_the_benchmark(peer: Any) -> None:
    prepare(peer, 1)
    with pytest.raises(peers.PeerFailed, match="UNKNOWN_TOPIC_OR_PARTITION"):
        commit(peer, 2, 1, 0.2)
