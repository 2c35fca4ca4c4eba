"""The topology of trending words, and functions that run it in threads with a real broker."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.monoids import TopN
from hmb.hailstorm.negotiator import NegotiatorSettings
from hmb.hailstorm.runners import RunResult, RunSettings, ThreadRunner
from hmb.hailstorm.sink import Sink
from hmb.hailstorm.snapshots import MemorySnapshotStore, SnapshotStore
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Topology
from tests.hailstorm.topologies import WORDS, count_bolt, word_pair

MakeTopic = Callable[..., str]


def words(count: int, partitions: int, seed: int = 0) -> list[list[bytes]]:
    chance = random.Random(seed)
    return [[chance.choice(WORDS).encode() for _ in range(count)] for _ in range(partitions)]


def counted(logs: list[list[bytes]]) -> dict[str, int]:
    return dict(Counter(word.decode() for log in logs for word in log))


def trending(topic: str, *sinks: Any) -> Topology:
    topology = Topology("trending")
    topology.spout("words", Spout(topic, word_pair))
    topology.bolt("count", count_bolt(), after="words", parallelism=2)
    local_top = Bolt.over(TopN(3), transform=lambda pair, state: [("top", tuple(sorted(state.items())))])
    topology.bolt("topn", local_top, after="count")
    for number, sink in enumerate(sinks or [Sink(lambda item: None)]):
        topology.sink(f"sink{number}", sink, after="count")
    return topology


def settings(servers: str, *, end: bool = True, grace: float | None = 0.05, **others: Any) -> RunSettings:
    others = {"max_restarts": None, **others}
    return RunSettings(servers, "end" if end else None, NegotiatorSettings(grace, patience=20.0), **others)


def run(topology: Topology, servers: str, store: SnapshotStore | None = None, **options: Any) -> RunResult:
    with ThreadRunner(topology, settings(servers, **options), store or MemorySnapshotStore()) as runner:
        return runner.wait(60)


def completed_sum(runner: ThreadRunner) -> int:
    return sum(((runner.master and runner.master.completed) or Clock()).values())
