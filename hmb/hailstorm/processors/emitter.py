"""The emitter: it sends the tuples of a spout or a bolt to the instances of the following nodes.

One call to `emit` sends tuples to all nodes that come next in the topology. If a node runs as several
instances, its grouping function selects the instance for each tuple.

Each receiver gets its tuples in a `Payloads` object. The object also has the sender's *low water mark* (one
offset for each partition). Every receiver needs the mark, so the emitter sends an object even if it contains no
tuples.

If the following node is a bolt with a combiner, the emitter first merges all tuples with the same key into one row
(module `combiner`). It then sends these rows instead of the tuples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hmb.client import TopicPartition
from hmb.hailstorm.bolt import Bolt, Combining
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.errors import UserCodeError
from hmb.hailstorm.grouping import Router
from hmb.hailstorm.payload import Number, Payloads
from hmb.hailstorm.processors.combiner import combine
from hmb.hailstorm.topology import Declaration, Processor, Processors


class Follower(NamedTuple):
    """A node that receives the sender's tuples, because it comes directly after the sender in the topology.

    node        the name of the node
    targets     the names of the node's instances
    router      selects the instance that receives a tuple
    combining   functions that merge tuples with the same key before sending; None if the node has no combiner
    """

    node: str
    targets: list[str]
    router: Router
    combining: Combining | None


class Emitter:
    """Collects the payloads that one processor sends. `outbox` has (receiver, payloads) pairs in sending order."""

    def __init__(self, processors: Processors, processor: Processor, epoch: int) -> None:
        self.outbox: list[tuple[str, Payloads]] = []
        self.sent = 0  # the number of tuples sent; a tuple counts once for each following node
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
        """Put one `Payloads` object into the outbox for each instance of each following node.

        - All `tuples` come from records of `partition`. `offsets` contains the offset of each tuple's record.
        - `mark` contains one offset for each partition. Later tuples come only from these or greater offsets.

        Raises UserCodeError if a grouping function or a combiner raises an exception.
        """
        made = Payloads(self._epoch, self._sender, path, partition, mark, tuples, offsets, numbers, times)
        self.sent += len(tuples) * len(self._followers)
        for node, targets, router, combining in self._followers:
            sent, routed_by = made, made.tuples
            if combining is not None and tuples:
                sent, routed_by = combine(made, combining, node)
            if len(targets) == 1:
                self.outbox.append((targets[0], sent))
                continue
            try:
                instances = router.instances(routed_by)
            except Exception as error:
                origin = f"a tuple of {partition} at offsets {offsets[0]} to {offsets[-1]}"
                raise UserCodeError(node, "group", origin, error) from error
            self._distribute(sent, targets, instances)

    def _distribute(self, made: Payloads, targets: list[str], instances: Sequence[int]) -> None:
        """Split the rows of `made` among the targets, and add one `Payloads` object for each target to the outbox.

        A row is one tuple with its offset. Row i goes to the target `targets[instances[i]]`.
        """
        rows: list[list[int]] = [[] for _ in targets]
        for row, instance in enumerate(instances):
            rows[instance].append(row)
        for target, chosen in zip(targets, rows, strict=True):
            columns = made.select(chosen)
            part = Payloads(made.epoch, made.sender, made.path, made.partition, made.mark, *columns, made.times)
            self.outbox.append((target, part))


def _combining(node: Declaration) -> Combining | None:
    return node.runs.combining if isinstance(node.runs, Bolt) else None
