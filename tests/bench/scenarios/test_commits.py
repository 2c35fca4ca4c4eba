"""The commit benchmark against a broker in this process: it counts what was committed."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from hmb.bench import peers
from hmb.bench.scenarios.commits import commit, prepare
from hmb.broker import Broker


@pytest.fixture
def peer() -> Any:
    with Broker(config={"log.flush.acks.all": "false", "offsets.topic.num.partitions": "2"}) as broker:
        yield SimpleNamespace(name="embedded", port=int(broker.bootstrap_servers.split(":")[1]), pid=os.getpid())


def test_a_run_is_checked_against_what_was_committed(peer: Any) -> None:
    prepare(peer, 3)
    run = commit(peer, 3, 4, 0.2)
    assert run.rate > 0 and 0 < run.p50 <= run.p99


def test_an_error_ends_the_benchmark(peer: Any) -> None:
    prepare(peer, 1)
    with pytest.raises(peers.PeerFailed, match="UNKNOWN_TOPIC_OR_PARTITION"):
        commit(peer, 2, 1, 0.2)
