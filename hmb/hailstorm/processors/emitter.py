"""The emitter: it sends the tuples of a spout or a bolt to the instances of the following nodes.

One call to `emit` makes one `Payloads` for each instance of each following node. The tuples are distributed by the
node's grouping. The mark goes to every instance, also to those that get no tuple.

The tuples for a bolt that combines are merged by key before they are distributed (`combiner`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hmb.client import TopicPartition
from hmb.hailstorm.bolt import Bolt, Combining
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.grouping import Router
from hmb.hailstorm.payload import Number, Payloads
from hmb.hailstorm.processors.combiner import combine
from hmb.hailstorm.topology import Declaration, Processor, Processors


class Follower(NamedTuple):
    """A following node: the names of its instances, its grouping, and how it combines tuples, if it does."""

    node: str
    targets: list[str]
    router: Router
    combining: Combining | None


class Emitter:
    """Collects the payloads that one processor sends, as pairs of a receiver and payloads, in the order of sending."""

    def __init__(self, processors: Processors, processor: Processor, epoch: int) -> None:
        self.outbox: list[tuple[str, Payloads]] = []
        self.sent = 0  # number of tuples
        self._epoch, self._sender = epoch, processor.name
        self._followers = [
            Follower(node.name, processors.targets(node), Router(node.group, node.parallelism), _combining(node))
            for node in processors.followers[processor.node.name]
        ]

    def emit(
        self,
        path: tuple[str, ...],
        partition: TopicPartition,
        mark: Clock,
        times: dict[TopicPartition, int],
        tuples: list[Any],
        offsets: list[int],
        numbers: list[Number] | None = None,
    ) -> None:
        """Send tuples that originate in one partition, and the mark after them."""
        made = Payloads(self._epoch, self._sender, path, partition, mark, tuples, offsets, numbers, times)
        self.sent += len(tuples) * len(self._followers)
        for node, targets, router, combining in self._followers:
            sent, routed_by = made, made.tuples
            if combining is not None and tuples:
                sent, routed_by = combine(made, combining, node)
            if len(targets) == 1:
                self.outbox.append((targets[0], sent))
            else:
                self._distribute(sent, targets, router.instances(routed_by))

    def _distribute(self, made: Payloads, targets: list[str], instances: Sequence[int]) -> None:
        """Send each row to one of the targets. `instances` has the number of the target of each row."""
        rows: list[list[int]] = [[] for _ in targets]
        for row, instance in enumerate(instances):
            rows[instance].append(row)
        for target, chosen in zip(targets, rows, strict=True):
            columns = made.select(chosen)
            part = Payloads(made.epoch, made.sender, made.path, made.partition, made.mark, *columns, made.times)
            self.outbox.append((target, part))


def _combining(node: Declaration) -> Combining | None:
    return node.runs.combining if isinstance(node.runs, Bolt) else None
