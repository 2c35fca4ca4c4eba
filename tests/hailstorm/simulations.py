"""Simulations that check invariants at each complete snapshot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.codec import decode
from hmb.hailstorm.grouping import instance_of
from hmb.hailstorm.simulation import Simulation, SimulationResult
from tests.hailstorm import topologies


class CheckedSimulation(Simulation, ABC):
    """Compares each complete snapshot with the result of a batch job over the records that the snapshot covers."""

    @abstractmethod
    def expected(self, clock: Clock | None) -> dict[str, Any]:
        """Return the correct state of each checked node, by the name of the node.

        A state includes the records below the offsets in `clock`, or all records if `clock` is None.
        """

    def on_complete(self, clock: Clock) -> None:
        super().on_complete(clock)
        for node, expected in self.expected(clock).items():
            self.check_node(node, expected, clock)

    def check_node(self, node: str, expected: Any, clock: Clock) -> None:
        """Compare the merged snapshots of all instances of a node with the expected state."""
        declaration = self.processors.topology.nodes[node]
        assert isinstance(declaration.runs, Bolt)
        monoid = declaration.runs.monoid
        together = monoid.empty()
        for name in self.processors.targets(declaration):
            value = decode(self.store.load(name, clock))
            together = monoid.merge(together, monoid.from_value(value[0]))
        assert together == expected, f"{node} at {clock}: {together} instead of {expected}"


class TrendingSimulation(CheckedSimulation):
    def expected(self, clock: Clock | None) -> dict[str, Any]:
        counts = topologies.counts(self._records, clock)
        local = [topologies.top(3, {w: n for w, n in counts.items() if instance_of(w, 2) == i}) for i in range(2)]
        return {"count": counts, "topn": topologies.top(3, local[0] | local[1])}


class TracingSimulation(CheckedSimulation):
    def expected(self, clock: Clock | None) -> dict[str, Any]:
        return topologies.origins(self._records, clock)


def run_trending(seed: int, *, combine: bool = False, **options: Any) -> SimulationResult:
    logs = topologies.word_logs(seed)
    run = TrendingSimulation(topologies.trending(combine=combine), logs, seed, **options)
    result = run.run()
    assert result.states == run.expected(None)
    return result


def run_combining(seed: int, **options: Any) -> SimulationResult:
    return run_trending(seed, combine=True, **options)


def run_tracing(seed: int, **options: Any) -> SimulationResult:
    logs = topologies.word_logs(seed)
    written: list[Any] = []
    by_id: dict[Any, Any] = {}
    topology = topologies.tracing(lambda items, clock: written.extend(items), by_id.__setitem__)
    run = TracingSimulation(topology, logs, seed, **options)
    result = run.run()
    expected = run.expected(None)
    assert result.states["third"] == expected["third"]
    origins = sorted(origin for _, origin in by_id.values())
    assert origins == sorted(o for o, count in expected["third"].items() for _ in range(count)), "the idempotent sink"
    result.states["written"] = sorted(origin for _, origin in written)
    return result
