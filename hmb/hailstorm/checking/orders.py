"""Checks that tuples reach each node, and that the order of events does not change the results.

The check of a topology also tests the grouping of each bolt. The grouping decides which of the bolt's parallel
instances receives a tuple. It must send all tuples with the same key to the same instance.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hmb.client import ConsumerRecord
from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.checking.laws import bolt_problems, changed_call
from hmb.hailstorm.checking.messages import show, show_difference
from hmb.hailstorm.errors import HailstormError
from hmb.hailstorm.monoids import MapOf
from hmb.hailstorm.monoids.base import FunctionMonoid, Monoid, NoState
from hmb.hailstorm.simulation import Partitions, Simulation, SimulationResult
from hmb.hailstorm.sink import Sink
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Declaration, Topology

ORDERS = 20  # the number of runs of the simulation, each with another order of events
MAX_LATE_SHARE = 0.25  # the largest share of late records that is no problem


@dataclass
class Observed:
    """The observations at one spout or one bolt during the first run of the topology.

    tuples   the tuples that the spout made, or that the bolt received
    changed  messages about functions that returned different values for the same arguments
    raised   the exceptions that the function `convert` of a spout raised
    """

    tuples: list[Any] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    raised: list[Exception] = field(default_factory=list)


Seen = dict[str, Observed]  # name of a node -> its observations


def topology_problems(topology: Topology, records: Mapping[str, Partitions], seed: int) -> Iterator[str]:
    """Yield the problems of a topology, each with the name of its node. `records` contains each topic's records."""
    nodes = [node for node in topology.in_order() if isinstance(node.runs, Spout | Bolt)]
    seen: Seen = {node.name: Observed() for node in nodes}
    try:
        first = Simulation(_without_sinks(topology, seen), records, seed).run()
    except HailstormError as error:
        yield f"{topology.name} does not run: {error}"
        return
    broken = set()
    for node in nodes:
        for problem in _node_problems(node, records, seen, seed):
            broken.add(node.name)
            yield f"{node.name}: {problem}"
    yield from _late_problems(topology, records, first)
    yield from _order_problems(topology, records, first, seed, broken)


def late_records(topology: Topology, records: Mapping[str, Partitions]) -> dict[str, int]:
    """Return the number of late records for each spout, by the name of the spout.

    A spout reads the records of a topic, and leaves out late records. A record is late if its event time is more
    than `allowed_lateness` ms before the newest event time of the earlier records in its partition. The result
    contains only spouts with late records.
    """
    found = Simulation(_without_sinks(topology, {}), records, seed=0).run().late_records
    return {name: count for name, count in found.items() if count}


def _late_problems(topology: Topology, records: Mapping[str, Partitions], first: SimulationResult) -> Iterator[str]:
    """Yield a problem for each spout that leaves out a large share of its records, because they are late."""
    for name, late in first.late_records.items():
        spout = topology.spouts[name]
        count = sum(map(len, records[spout.topic]))
        if late > MAX_LATE_SHARE * count:
            yield (
                f"{name}: {late} of {count} records are late and are left out. `allowed_lateness` is "
                f"{spout.allowed_lateness} ms; `event_time` must return ms since 1970, not seconds"
            )


def _node_problems(node: Declaration, records: Mapping[str, Partitions], seen: Seen, seed: int) -> Iterator[str]:
    """Yield the problems of one spout or bolt (`node`).

    `seen` contains the tuples and errors that the check observed at each node during a test run of the topology.
    """
    tuples = seen[node.name].tuples
    changed = seen[node.name].changed[:1]
    yield from changed
    if isinstance(node.runs, Spout):
        count = sum(map(len, records[node.runs.topic]))
        if not count:
            what = f"nothing was checked, because the topic {node.runs.topic} has no records"
            yield f"{what}. A run would wait for records, or end without a result"
        elif not tuples:
            raised = seen[node.name].raised
            why = f". It raised {type(raised[0]).__name__}: {raised[0]}" if raised else ""
            yield f"nothing was checked: `convert` returned no tuple for any of the {count} records{why}"
    elif isinstance(node.runs, Bolt):
        if not tuples and any(seen[before].tuples for before in node.after):
            yield f"it was not checked, because {', '.join(node.after)} sent no tuple to it. Use more records"
        if not changed:
            yield from bolt_problems(node.runs, tuples, random.Random(seed))
        yield from _grouping_problems(node, node.runs, tuples)


def _grouping_problems(node: Declaration, bolt: Bolt, tuples: list[Any]) -> Iterator[str]:
    """Yield a problem if two tuples with the same key can go to different instances of a bolt.

    If a bolt runs as several instances, the function `node.group` decides which instance receives a tuple. All tuples
    with the same key must go to the same instance, because this instance stores the state of the key.
    """
    if node.parallelism == 1:
        return
    found: dict[Any, tuple[Any, Any]] = {}  # key -> (grouping, tuple) of the first tuple with this key
    for item in tuples:
        for key in _keys(bolt, item):
            group, other = found.setdefault(key, (node.group(item), item))
            if group != node.group(item):
                yield (
                    f"its grouping is not the key of its state: the tuples {show(other)} and {show(item)} have the key "
                    f"{show(key)}, but can go to different instances, so each instance computes a part of the result. "
                    "Declare the bolt without `group`, or let `group` return the key"
                )
                return


def _keys(bolt: Bolt, item: Any) -> list[Any]:
    """Return a list with one element: the key that the tuple `item` has in the bolt's state.

    Return an empty list if the bolt's state has no keys, or if the function cannot find the key.
    """
    if bolt.key is not None:
        return [bolt.key(item)]
    if type(bolt.monoid) in (MapOf, FunctionMonoid):
        state = bolt.lift(item)
        if isinstance(state, dict) and len(state) == 1:
            return list(state)
    return []


# -- many orders of events


def _order_problems(
    topology: Topology, records: Mapping[str, Partitions], first: SimulationResult, seed: int, broken: set[str]
) -> Iterator[str]:
    """Yield a problem if the result of a bolt depends on the order of events.

    The function runs the topology several times, each time with another order of events. It compares the bolts'
    results with `first`, the results of an earlier run. If a run fails, the function yields the error and stops.

    When a bolt has a different result, the function yields a problem and stops, because this difference can change
    the results of all later bolts.

    The set `broken` contains the names of bolts and spouts with problems that the check has already reported. If
    the bolt that differs is in `broken`, the function stops without a second report.
    """
    quiet = _without_sinks(topology, {})
    for order in range(1, ORDERS):
        try:
            result = Simulation(quiet, records, seed + order, crashes=order % 4).run()
        except HailstormError as error:
            yield f"{topology.name} does not run in every order of events: {error}"
            return
        for node in topology.in_order():
            problem = _order_problem(topology, node, first, result)
            if problem is not None:
                if node.name not in broken:
                    yield f"{node.name}: {problem}"
                return


def _order_problem(
    topology: Topology, node: Declaration, first: SimulationResult, result: SimulationResult
) -> str | None:
    """Return a problem if the bolt `node` has different results in two runs."""
    bolt, name = node.runs, node.name
    if not isinstance(bolt, Bolt):
        return None
    if first.late.get(name) or result.late.get(name):
        return (
            "its results depend on the order in which tuples arrive, because tuples came after their windows were "
            "closed. Its `time` must not return an earlier time than the `event_time` of the spout"
        )
    if bolt.windows is not None:
        monoid = bolt.windows.content
        runs = [{window: monoid.result(state) for window, state in it.windows[name].items()} for it in (result, first)]
        states: list[Any] = [result.windows[name], first.windows[name]]
    else:
        states = [result.states[name], first.states[name]]
        runs = [_result(bolt.monoid, state) for state in states]
    if states[0] == states[1]:
        return None
    differing = show_difference(*(states if runs[0] == runs[1] else runs))
    return f"its state depends on the order in which tuples arrive: {differing}. {_advice(topology, node)}"


def _result(monoid: Monoid[Any], state: Any) -> Any:
    """Return the value that `monoid.result` computes from a state, or None if this method raises an error."""
    try:
        return monoid.result(state)
    except Exception:  # noqa: BLE001  # A user's monoid can raise anything. The message then shows the state itself.
        return None


def _advice(topology: Topology, node: Declaration) -> str:
    if all(isinstance(topology.nodes[before].runs, Spout) for before in node.after):
        return "`lift` must depend on the tuple alone"
    return (
        f"It follows {', '.join(node.after)}, whose running values depend on how partitions interleave. Only the "
        "newest value by version (Newest), or the maximum of a value that only grows (Max, TopN), is exact there"
    )


# -- copies of the topology


def _without_sinks(topology: Topology, seen: Seen) -> Topology:
    """Return a copy of a topology in which the sinks do nothing.

    During a run of the copy, each spout or bolt named in `seen` adds its tuples and errors to `seen[name]`.
    """
    quiet = Topology(topology.name, topology.version)
    for node in topology.nodes.values():
        runs = node.runs
        if not isinstance(runs, Bolt | Spout):
            runs = Sink(lambda item: None)
        elif node.name in seen:
            observed = seen[node.name]
            runs = _recording_bolt(runs, observed) if isinstance(runs, Bolt) else _recording_spout(runs, observed)
        quiet.nodes[node.name] = replace(node, runs=runs)
    return quiet


def _recording_bolt(bolt: Bolt, seen: Observed) -> Bolt:
    recording = copy.copy(bolt)
    recording.combining = None  # With a combiner, `lift` would not be called.
    if isinstance(bolt.monoid, NoState):  # Hailstorm never calls `lift` for a bolt without a state.

        def transform(item: Any, state: Any) -> Any:
            seen.tuples.append(item)
            outputs = list(bolt.transform(item, state))
            seen.changed += changed_call("transform", outputs, lambda: list(bolt.transform(item, state)), item)
            return outputs

        recording.transform = transform
        return recording

    def lift(item: Any) -> Any:
        seen.tuples.append(item)
        return bolt.lift(item)

    recording.lift = lift
    return recording


def _recording_spout(spout: Spout, seen: Observed) -> Spout:
    def convert(record: ConsumerRecord) -> Any:
        try:
            item = spout.convert(record)
        except Exception as error:
            seen.raised.append(error)
            raise
        seen.changed += changed_call("convert", item, lambda: spout.convert(record), record.value)
        if item is not None:
            seen.tuples.append(item)
        return item

    return replace(spout, convert=convert)
