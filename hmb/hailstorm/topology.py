"""The topology: spouts, bolts and sinks, and how tuples flow between them.

A topology is a directed acyclic graph of *nodes*. A node is a spout (it reads a topic), a bolt (it processes
tuples) or a sink (it writes the results). Each node runs as one or more *processors*. A spout has one processor
for each partition of its topic. For a bolt or a sink, the user sets the number (`parallelism`). The example of
the Hailstorm paper finds trending hashtags:
    topology = Topology("trending")
    topology.spout("tags", Spout("hashtags", convert=lambda record: (record.value.decode(), 1)))
    topology.bolt("count", count, after="tags", parallelism=3)
    topology.bolt("topn", local_top, after="count", parallelism=2)
    topology.sink("console", Sink(print), after="topn")

In the example `trending`, the topic `hashtags` has 2 partitions, so the spout `tags` has 2 processors. The
other nodes have `parallelism` processors (by default 1):
    tags               tags-0 tags-1
    count              count-0 count-1 count-2
    topn               topn-0 topn-1
    console            console-0

A processor is one instance of a node. For example, the node `count` comes after the node `tags`, and has the
processors `count-0`, `count-1` and `count-2`. For each tuple from `tags`, the grouping function of `count`
selects one of these three processors.

If several nodes come after `tags`, each of them gets every tuple.

A `Processors` object contains all processors of a topology, computed from the current partitions of its topics.
For each processor P, it also contains the processors that send tuples to P, and the partitions from which these
tuples come.

The name of a processor is the name of its node, a hyphen and a number, for example `count-2`. The names of
nodes are unique, so the names of processors are unique, too.

**Changes.** A topology can load its old snapshots only if its *shape* has not changed. The shape includes the
nodes, their connections, their parallelism, and the kind of each bolt's state. For example, the shape changes
if a bolt gets a fourth instance. Some keys then belong to another instance, whose snapshot does not contain
them.

If the shape of a topology changes, the topology needs a new snapshot store. The spouts then start as in a new
topology. For example, a bolt that stores averages instead of sums cannot load the old sums.

A snapshot store saves the `fingerprint` of its topology, and refuses a topology with another fingerprint. The
fingerprint contains the nodes, and the kind of each bolt's state, for example `MapOf(Sum())`.

The fingerprint of a topology cannot contain the code of functions. Suppose that a function returned prices in
euros, and now returns cents. The stored sums are then wrong. In this case, change the `version` of the
topology. It is part of the fingerprint, so the topology cannot load these sums.

You can change some options of a node, for example `allowed_lateness`, and keep the old snapshots. These options
are not part of the fingerprint. The new value of an option applies to the records after the newest snapshot.

A topic of a topology can get new partitions. At its next start, the topology can still load its old snapshots.
The newest complete snapshot contains the next offset of each old partition, so the spout continues there. It
contains no offset for a new partition. For a new partition, the spout begins at the position that its option
`offset` selects: "earliest" or "latest".

Source: Hailstorm, chapter 3, "Hailstorm Overview".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hmb.client import TopicPartition
from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.errors import TopologyError
from hmb.hailstorm.grouping import Grouping, first
from hmb.hailstorm.sink import AnySink, HeldBackSink, IdempotentSink, Sink, TransactionalSink
from hmb.hailstorm.spout import Spout

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
NEGOTIATOR = "negotiator"


@dataclass(frozen=True)
class Declaration:
    """One node as the user declares it: a spout, bolt or sink, its upstream nodes, and its parallelism."""

    name: str
    runs: Spout | Bolt | AnySink
    after: tuple[str, ...] = ()
    parallelism: int = 1
    group: Grouping = first


class Topology:
    """A directed acyclic graph of nodes (spouts, bolts and sinks), in the order of their declaration.

    `name` begins with a letter, and contains only letters, digits and _. With a new name, a topology cannot load
    its old snapshots, because the snapshot store refuses a topology with another name.

    `version` is any text. If you change a function so that the old states have another meaning, change `version`,
    too. The snapshot store then refuses to load the old snapshots.
    """

    def __init__(self, name: str, version: str = "1") -> None:
        if not NAME.fullmatch(name):
            raise TopologyError(f"{name!r} is not a name for a topology: use letters, digits and _")
        self.name, self.version = name, version
        self.nodes: dict[str, Declaration] = {}

    def spout(self, name: str, spout: Spout) -> None:
        """Add a spout node, which reads a topic."""
        if not isinstance(spout, Spout):
            raise TopologyError(f"{name}: a {type(spout).__name__} is not a Spout")
        self._add(Declaration(name, spout))

    def bolt(
        self, name: str, bolt: Bolt, after: str | Iterable[str], parallelism: int = 1, group: Grouping | None = None
    ) -> None:
        """Add a bolt node. The bolt processes the tuples of the nodes that `after` names.

        The bolt runs as `parallelism` instances. Tuples with the same key go to the same instance. The function `group`
        returns the key of a tuple. Its default is the bolt's key function or, if the bolt has none, the first element
        of the tuple.
        """
        if not isinstance(bolt, Bolt):
            raise TopologyError(f"{name}: a {type(bolt).__name__} is not a Bolt")
        if bolt.mistake is not None:
            raise TopologyError(f"{name}: {bolt.mistake}")
        self._add(Declaration(name, bolt, _names(after), parallelism, group or bolt.key or first))

    def sink(
        self, name: str, sink: AnySink, after: str | Iterable[str], parallelism: int = 1, group: Grouping = first
    ) -> None:
        """Add a sink node. The sink writes the tuples of the nodes in `after` to the outside world."""
        if not isinstance(sink, Sink | IdempotentSink | HeldBackSink | TransactionalSink):
            advice = "to call a function with each tuple, use Sink(function)"
            raise TopologyError(f"{name}: a {type(sink).__name__} is not a sink: {advice}")
        self._add(Declaration(name, sink, _names(after), parallelism, group))

    def _add(self, node: Declaration) -> None:
        if not NAME.fullmatch(node.name) or node.name == NEGOTIATOR:
            raise TopologyError(f"{node.name!r} is not a name for a node: use letters, digits and _")
        if node.name in self.nodes:
            raise TopologyError(f"{self.name} has two nodes named {node.name!r}: each node must have a unique name")
        if node.parallelism < 1:
            raise TopologyError(f"{node.name}: the parallelism must be at least 1, not {node.parallelism}")
        self.nodes[node.name] = node
        self._check_event_times()

    def _check_event_times(self) -> None:
        """Raise TopologyError if a bolt with windows gets tuples from a spout that sets no event times."""
        for node in self.nodes.values():
            if isinstance(node.runs, Bolt) and node.runs.windows is not None:
                for name in self._before(node.name):
                    if isinstance(spout := self.nodes[name].runs, Spout) and spout.event_time is None:
                        what = f"{node.name} has windows of event time, but the spout {name} has no event times"
                        raise TopologyError(f"{what}. Every window would stay in memory: use Spout(event_time=...)")

    def _before(self, name: str) -> set[str]:
        """Return the names of the nodes whose tuples reach the node `name`, directly or through other nodes."""
        found: set[str] = set()
        left = [name]
        while left:
            upstream = {before for before in self.nodes[left.pop()].after if before in self.nodes} - found
            found |= upstream
            left += upstream
        return found

    @property
    def spouts(self) -> dict[str, Spout]:
        return {name: node.runs for name, node in self.nodes.items() if isinstance(node.runs, Spout)}

    def followers(self, name: str) -> list[Declaration]:
        """Return the nodes that receive the tuples of the node `name`."""
        return [node for node in self.nodes.values() if name in node.after]

    def in_order(self) -> list[Declaration]:
        """Return the nodes in topological order: each node comes after all nodes that send tuples to it.

        Raises TopologyError in these cases:

        - The nodes form a cycle, or the topology has no spout.
        - Two spouts read the same topic.
        - A bolt or sink receives tuples from no node, from a node that does not exist, or from a sink.
        - An IdempotentSink receives tuples from a bolt with `combine=True`, directly or through other nodes.
        """
        self._check_names()
        done: dict[str, Declaration] = {}
        waiting = dict(self.nodes)
        while waiting:
            ready = [node for node in waiting.values() if all(before in done for before in node.after)]
            if not ready:
                raise TopologyError(f"{self.name} has a cycle: {' -> '.join(_cycle(waiting))}")
            for node in ready:
                done[node.name] = waiting.pop(node.name)
        self._check_combining(done)
        return list(done.values())

    def _check_combining(self, nodes: Mapping[str, Declaration]) -> None:
        """Raise TopologyError if tuples of a combining bolt (with `combine=True`) can reach an IdempotentSink.

        An IdempotentSink writes each output with an identity. If an output arrives again after a crash, it has the same
        identity, and overwrites the old output. But a combining bolt can give its tuples new identities after a crash.
        The old outputs would then remain.

        `nodes` are in topological order.
        """
        # `combines[name]` is a bolt with combine=True: the node `name` itself, or a bolt before it in the topology.
        combines: dict[str, str] = {}
        for node in nodes.values():
            found = [combines[before] for before in node.after if before in combines]
            if isinstance(node.runs, Bolt) and node.runs.combining is not None:
                found = [node.name]
            if found:
                combines[node.name] = found[0]
            if found and isinstance(node.runs, IdempotentSink):
                what = f"{node.name} is an IdempotentSink after {found[0]}, a bolt with combine=True"
                why = "the tuples of the bolt can have other identities after a crash"
                raise TopologyError(f"{what}: {why}. Use combine=False for the bolt")

    def _check_names(self) -> None:
        if not self.spouts:
            raise TopologyError(f"{self.name} has no spout: a topology needs at least one spout")
        topics = [spout.topic for spout in self.spouts.values()]
        for topic in topics:
            if topics.count(topic) > 1:
                what = f"two spouts of {self.name} read the topic {topic!r}"
                raise TopologyError(f"{what}. Use only one spout: it can send its tuples to several nodes")
        for node in self.nodes.values():
            if not node.after and not isinstance(node.runs, Spout):
                raise TopologyError(f"{node.name} would receive no tuples: no node comes before {node.name}")
            for before in node.after:
                if before not in self.nodes:
                    raise TopologyError(f"{node.name} comes after {before!r}, which does not exist")
                if not isinstance(self.nodes[before].runs, Spout | Bolt):
                    why = f"{before} is a sink, and sinks send no tuples"
                    raise TopologyError(f"{node.name} cannot come after {before}: {why}")


def _names(after: str | Iterable[str]) -> tuple[str, ...]:
    return (after,) if isinstance(after, str) else tuple(after)


def _cycle(nodes: Mapping[str, Declaration]) -> list[str]:
    """Return the names of the nodes in one cycle. The first name is repeated at the end."""
    path: list[str] = []
    name = next(iter(nodes))
    while name not in path:
        path.append(name)
        name = next(before for before in nodes[name].after if before in nodes)
    return [*reversed(path[path.index(name) :]), path[-1]]


@dataclass(frozen=True)
class Processor:
    """One instance of a node. `partition` is the partition that a spout reads, or None for a bolt or a sink."""

    node: Declaration
    index: int
    partition: TopicPartition | None = None

    @property
    def name(self) -> str:
        return f"{self.node.name}-{self.index}"

    @property
    def saves(self) -> bool:
        """Whether this processor saves snapshots of its state.

        Bolts and sinks save snapshots. A spout saves snapshots only if it has event times or a topic for dead letters.
        Any other spout has only one state: the offset of its next record. The clock of each snapshot already contains
        this offset, so the spout needs no snapshot of its own.
        """
        runs = self.node.runs
        return not isinstance(runs, Spout) or runs.event_time is not None or runs.dead_letters is not None

    @property
    def holds_outputs(self) -> bool:
        """Whether this processor is a sink that writes its outputs only when a snapshot is complete."""
        return isinstance(self.node.runs, HeldBackSink | TransactionalSink)


class Processors:
    """All processors of a topology. A spout has one processor for each partition of its topic.

    These fields are dicts, written as key -> value:
    by_name        name of a processor -> the processor; senders come before receivers
    followers      name of a node -> the nodes to which this node sends its tuples
    upstreams      name of a receiving processor -> a dict: partition -> names of the sending processors

    For example, `upstreams["count-0"][p]` contains the names of the processors that send tuples from the partition
    `p` to `count-0`.
    """

    def __init__(self, topology: Topology, partitions: Mapping[str, Sequence[int]]) -> None:
        """`partitions` maps each input topic to its partition numbers, for example "hashtags" to [0, 1]."""
        self.topology = topology
        self.by_name: dict[str, Processor] = {}
        self.followers = {name: topology.followers(name) for name in topology.nodes}
        self.upstreams: dict[str, dict[TopicPartition, frozenset[str]]] = {}
        instances: dict[str, list[Processor]] = {}
        reached: dict[str, set[TopicPartition]] = {}
        for node in topology.in_order():
            if isinstance(node.runs, Spout):
                numbers = partitions[node.runs.topic]
                made = [Processor(node, number, TopicPartition(node.runs.topic, number)) for number in numbers]
                reached[node.name] = {each.partition for each in made if each.partition}
            else:
                made = [Processor(node, number) for number in range(node.parallelism)]
                reached[node.name] = set().union(*(reached[before] for before in node.after))
            instances[node.name] = made
            for processor in made:
                self.by_name[processor.name] = processor
                self.upstreams[processor.name] = self._upstreams(node, instances, reached)
        self.partitions = {each.partition: each.name for each in self.by_name.values() if each.partition}

    @staticmethod
    def _upstreams(
        node: Declaration, instances: Mapping[str, list[Processor]], reached: Mapping[str, set[TopicPartition]]
    ) -> dict[TopicPartition, frozenset[str]]:
        """Return the names of the processors that send tuples to `node`, as a dict with partitions as keys.

        For example, {p: {"count-0"}} means that only the processor count-0 sends tuples from records of partition p.

        For each node, `instances` contains the node's processors, and `reached` contains the partitions whose tuples
        reach the node.
        """
        found: dict[TopicPartition, set[str]] = {}
        for before in node.after:
            for processor in instances[before]:
                carries = reached[before] if processor.partition is None else {processor.partition}
                for partition in carries:
                    found.setdefault(partition, set()).add(processor.name)
        return {partition: frozenset(names) for partition, names in found.items()}

    def named(self, name: str) -> Processor:
        """Return the processor with this name. Raises TopologyError if the topology has no such processor."""
        if name not in self.by_name:
            raise TopologyError(f"{self.topology.name} has no processor {name!r}; it has {', '.join(self.by_name)}")
        return self.by_name[name]

    def targets(self, node: Declaration) -> list[str]:
        """Return the names of a node's processors, in the order of their numbers."""
        return [each.name for each in self.by_name.values() if each.node is node]

    def fingerprint(self) -> dict[str, Any]:
        """Return the parts of the topology that must stay the same, so that it can load its old snapshots.

        These parts are the name and the version of the topology, and the name and kind of each node. They also include:

        - Spout: the topic, whether it has event times, and whether it has a topic for dead letters.
        - Bolt: its inputs, its parallelism, and the kind of its state.
        - Sink: its inputs and its parallelism.
        """
        return {
            "topology": self.topology.name,
            "version": self.topology.version,
            "nodes": {node.name: _shape(node) for node in self.topology.in_order()},
        }


def _shape(node: Declaration) -> dict[str, Any]:
    if isinstance(node.runs, Spout):
        counts = {"dead letters": True} if node.runs.dead_letters is not None else {}
        return {"kind": "spout", "topic": node.runs.topic, "event times": node.runs.event_time is not None, **counts}
    shape = {"after": sorted(node.after), "parallelism": node.parallelism}
    if isinstance(node.runs, Bolt):
        return {"kind": "bolt", **shape, "state": node.runs.monoid.describe()}
    return {"kind": "sink", **shape}
