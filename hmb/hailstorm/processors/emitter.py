"""The emitter: it sends the tuples of a spout or a bolt to the instances of the following nodes.

One call to `emit` makes one `Payloads` for each instance of each following node. The tuples are distributed by the
node's grouping. The mark goes to every instance, also to those that get no tuple.
"""

from __future__ import annotations

from typing import Any

from hmb.client import TopicPartition
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.grouping import Router
from hmb.hailstorm.payload import Number, Payloads
from hmb.hailstorm.topology import Processor, Processors


class Emitter:
    """Collects the payloads that one processor sends, as pairs of a receiver and payloads, in the order of sending."""

    def __init__(self, processors: Processors, processor: Processor, epoch: int) -> None:
        self.outbox: list[tuple[str, Payloads]] = []
        self.sent = 0  # number of tuples
        self._epoch, self._sender = epoch, processor.name
        self._followers = [
            (processors.targets(node), Router(node.group, node.parallelism))
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
        for targets, router in self._followers:
            self.sent += len(tuples)
            if len(targets) == 1:
                self.outbox.append((targets[0], made))
            else:
                self._distribute(made, targets, router)

    def _distribute(self, made: Payloads, targets: list[str], router: Router) -> None:
        rows: list[list[int]] = [[] for _ in targets]
        for row, instance in enumerate(router.instances(made.tuples)):
            rows[instance].append(row)
        for target, chosen in zip(targets, rows, strict=True):
            columns = made.select(chosen)
            part = Payloads(made.epoch, made.sender, made.path, made.partition, made.mark, *columns, made.times)
            self.outbox.append((target, part))
