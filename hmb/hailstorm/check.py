"""`check` tests whether a bolt obeys the laws, and whether a topology returns the same result in every order of events.

Nothing in Python can prove that a `merge` is commutative. The function `check` searches for a counterexample instead.
It makes states from sample tuples, and applies the laws to them. If a law does not hold, the problem that `check`
returns names the law and the states.

The function `check` has two forms:
    check(bolt, tuples)          checks the laws of the bolt's monoid, and the purity of its functions
    check(topology, records)     checks each bolt like this, with the tuples that reach it; then checks the topology

The check of a topology also runs the topology in the simulation, in many orders of events and with crashes. All runs
must end with the same states. These runs find a mistake that a check of each single bolt cannot find. For example, a
bolt may sum up the running values of another bolt. Both bolts obey the laws, but the sum depends on the order in which
tuples of different partitions arrive.

An empty list of problems means that `check` found no counterexample. With more samples, it may still find one.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.codec import decode, encode
from hmb.hailstorm.errors import CodecError, HailstormError
from hmb.hailstorm.monoids.base import NoState
from hmb.hailstorm.simulation import Partitions, Simulation
from hmb.hailstorm.sink import Sink
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Topology

ROUNDS = 100  # the number of times that each law is tested, each time with other random states
ORDERS = 20  # the number of runs of the simulation, each with another order of events
SHOWN = 120  # the most characters of a state that a message contains


def check(checked: Bolt | Topology, samples: Sequence[Any] | Mapping[str, Partitions], seed: int = 0) -> list[str]:
    """Return the problems that the check finds. One or two sentences describe each problem.

    For a bolt, `samples` are tuples. For a topology, `samples` are the records of each partition of each topic:
    `{topic: [[record]]}`.
    """
    if isinstance(checked, Topology):
        assert isinstance(samples, Mapping)
        return list(_topology_problems(checked, samples, seed))
    assert not isinstance(samples, Mapping)
    return list(_first_of_each(_bolt_problems(checked, list(samples), random.Random(seed))))


# -- one bolt


def _bolt_problems(bolt: Bolt, tuples: Sequence[Any], chance: random.Random) -> Iterator[str]:
    """Yield every problem of one bolt, as text: the kind of the problem, a colon, the details."""
    if isinstance(bolt.monoid, NoState) or not tuples:
        return
    for _ in range(ROUNDS):
        a, b, c = (_state(bolt, chance.choices(tuples, k=chance.randint(0, 4))) for _ in range(3))
        item = chance.choice(tuples)
        problem = _codec_problem(bolt, a)
        if problem is not None:
            yield problem
            return  # The checks below copy states with the codec, so they cannot run if the codec fails.
        yield from _law_problems(bolt, a, b, c)
        yield from _operation_problems(bolt, a, b)
        yield from _purity_problems(bolt, item, _state(bolt, [item, *chance.choices(tuples, k=3)]))


def _state(bolt: Bolt, tuples: Sequence[Any]) -> Any:
    return reduce(bolt.monoid.merge, map(bolt.lift, tuples), bolt.monoid.empty())


def _codec_problem(bolt: Bolt, state: Any) -> str | None:
    try:
        restored = _copy(bolt, state)
    except CodecError as error:
        return f"a state cannot be stored: {error}"
    if restored != state:
        return f"a state changes when it is stored: {_show(state)} comes back as {_show(restored)}"
    return None


def _law_problems(bolt: Bolt, a: Any, b: Any, c: Any) -> Iterator[str]:
    merge, empty = bolt.monoid.merge, bolt.monoid.empty()
    before = [_frozen(bolt, state) for state in (a, b)]
    for one, other in ((merge(empty, a), "merge(empty, a)"), (merge(a, empty), "merge(a, empty)")):
        if one != a:
            yield f"empty is not the identity of merge: {other} = {_show(one)} for a = {_show(a)}"
    if (one := merge(a, b)) != (another := merge(b, a)):
        yield (
            f"merge is not commutative: merge(a, b) = {_show(one)}, merge(b, a) = {_show(another)} "
            f"for a = {_show(a)}, b = {_show(b)}"
        )
    if (one := merge(merge(a, b), c)) != (another := merge(a, merge(b, c))):
        yield (
            f"merge is not associative: merge(merge(a, b), c) = {_show(one)}, merge(a, merge(b, c)) = {_show(another)} "
            f"for a = {_show(a)}, b = {_show(b)}, c = {_show(c)}"
        )
    if before != [_frozen(bolt, state) for state in (a, b)]:
        yield "merge changes its arguments: it must return a new state"


def _operation_problems(bolt: Bolt, a: Any, b: Any) -> Iterator[str]:
    """Yield a problem for each faster operation of the monoid (`absorb`, `view`) whose result differs from `merge`."""
    monoid = bolt.monoid
    merged = monoid.merge(a, b)
    if (absorbed := monoid.absorb(_copy(bolt, a), _copy(bolt, b))) != merged:
        yield f"absorb differs from merge: {_show(absorbed)} instead of {_show(merged)}"
    if (viewed := monoid.merge(monoid.empty(), monoid.view(a, b))) != merged:
        yield f"view differs from merge: {_show(viewed)} instead of {_show(merged)}"


def _purity_problems(bolt: Bolt, item: Any, state: Any) -> Iterator[str]:
    """Yield a problem if `lift` or `transform` changes its arguments, or if its second call returns another value."""
    lifted = _frozen(bolt, bolt.lift(item))
    grown = bolt.monoid.absorb(bolt.monoid.empty(), bolt.lift(item))
    bolt.monoid.absorb(grown, _copy(bolt, state))
    if _frozen(bolt, bolt.lift(item)) != lifted:
        yield f"lift is not pure: it returns parts that merges change later, for {_show(item)}"
    before = _frozen(bolt, state)
    try:
        outputs = [encode(list(bolt.transform(item, state))) for _ in range(2)]
    except CodecError as error:
        yield f"transform returns a tuple that cannot be sent: {error}"
        return
    except Exception as error:  # noqa: BLE001  # The user's function can raise anything. It is reported as a problem.
        yield f"transform raised {type(error).__name__}: {error}, for {_show(item)} and the state {_show(state)}"
        return
    if _frozen(bolt, state) != before:
        yield f"transform changes the state: it must only read it, for {_show(item)}"
    elif outputs[0] != outputs[1]:
        yield f"transform is not pure: two calls return different tuples, for {_show(item)}"


def _copy(bolt: Bolt, state: Any) -> Any:
    return bolt.monoid.from_value(decode(_frozen(bolt, state)))


def _frozen(bolt: Bolt, state: Any) -> bytes:
    return encode(bolt.monoid.to_value(state))


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 4] + " ..."


def _first_of_each(problems: Iterator[str]) -> Iterator[str]:
    """Yield the first problem of each kind. The kind is the part of the text before the first colon."""
    seen = set()
    for problem in problems:
        kind = problem.partition(":")[0]
        if kind not in seen:
            seen.add(kind)
            yield problem


# -- a whole topology


def _topology_problems(topology: Topology, records: Mapping[str, Partitions], seed: int) -> Iterator[str]:
    nodes = topology.in_order()
    seen: dict[str, list[Any]] = {node.name: [] for node in nodes if isinstance(node.runs, Bolt)}
    try:
        first = Simulation(_without_sinks(topology, seen), records, seed).run().states
    except HailstormError as error:
        yield f"{topology.name} does not run: {error}"
        return
    broken = set()
    for node in nodes:
        if isinstance(node.runs, Bolt):
            for problem in check(node.runs, seen[node.name], seed):
                broken.add(node.name)
                yield f"{node.name}: {problem}"
    quiet = _without_sinks(topology, {})
    for order in range(1, ORDERS):
        states = Simulation(quiet, records, seed + order, crashes=order % 4).run().states
        for node in nodes:
            if isinstance(node.runs, Bolt) and states[node.name] != first[node.name]:
                if node.name not in broken:
                    yield _order_problem(topology, node.name, node.after, states[node.name], first[node.name])
                return  # The following bolts also differ, but only because they receive tuples from this bolt.


def _order_problem(topology: Topology, name: str, after: Sequence[str], one: Any, other: Any) -> str:
    what = f"{name}: its state depends on the order in which tuples arrive: {_show(one)} or {_show(other)}"
    if all(isinstance(topology.nodes[before].runs, Spout) for before in after):
        return f"{what}. `lift` must depend on the tuple alone"
    return (
        f"{what}. It follows {', '.join(after)}, whose running values depend on how partitions interleave. Only the "
        "newest value by version (Newest), or the maximum of a value that only grows (Max, TopN), is exact there"
    )


def _without_sinks(topology: Topology, seen: dict[str, list[Any]]) -> Topology:
    """Return a copy of a topology whose sinks do nothing.

    If `seen` contains the name of a bolt, the copy of this bolt appends each tuple that it receives to `seen[name]`.
    """
    quiet = Topology(topology.name, topology.version)
    for node in topology.nodes.values():
        runs = node.runs
        if isinstance(runs, Bolt) and node.name in seen:
            runs = _recording(runs, seen[node.name])
        elif not isinstance(runs, Bolt | Spout):
            runs = Sink(lambda item: None)
        quiet.nodes[node.name] = replace(node, runs=runs)
    return quiet


def _recording(bolt: Bolt, seen: list[Any]) -> Bolt:
    recording = copy.copy(bolt)

    def lift(item: Any) -> Any:
        seen.append(item)
        return bolt.lift(item)

    recording.lift, recording.combining = lift, None  # With a combiner, this `lift` would not be called.
    return recording
