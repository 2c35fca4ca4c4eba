"""Keeps the queues of all partitions, and chooses the partition of a record without a key.

The producer may choose any partition for a record without a key. It sends all records without a key to the same
partition until a batch is full or sent, and then chooses another partition (KIP-480). The batches are then fewer and
larger than with a new choice for each record.

To choose a partition, the producer selects two partitions at random, and takes the partition with the shorter queue.
The queues of a slow leader are long, so this leader gets fewer records. Kafka's producer also prefers short queues, but
it chooses another partition after `batch.size` bytes (KIP-794).
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from hmb.client.producing.batch import PartitionQueue, ProducerBatch, SenderQueues
from hmb.protocol.topics import TopicPartition


class PartitionQueues:
    """The queues of all partitions to which the producer has sent records. The caller holds the accumulator's lock.

    `sticky` contains, for each topic, the queue that the next record without a key gets into.
    """

    def __init__(self, without_leader: SenderQueues) -> None:
        self._without_leader = without_leader
        self._queues: dict[str, dict[int, PartitionQueue]] = {}
        self.sticky: dict[str, PartitionQueue] = {}

    def __iter__(self) -> Iterator[PartitionQueue]:
        return (queue for queues in self._queues.values() for queue in queues.values())

    def topics(self) -> list[str]:
        return list(self._queues)

    def batches(self) -> list[ProducerBatch]:
        """Return the batches of all queues."""
        return [batch for queue in self for batch in queue.batches]

    def of(self, topic: str, partition: int) -> PartitionQueue:
        """Return the queue of a partition. If the partition has no queue yet, create one."""
        try:
            return self._queues[topic][partition]
        except KeyError:
            queue = PartitionQueue(TopicPartition(topic, partition), self._without_leader)
            self._queues.setdefault(topic, {})[partition] = queue
            return queue

    def choose(self, topic: str, partitions: int) -> PartitionQueue:
        """Choose another queue for the records without a key. `partitions` is the number of the topic's partitions."""
        drawn = random.sample(range(partitions), min(2, partitions))
        chosen = min([self.of(topic, number) for number in drawn], key=lambda queue: len(queue.batches))
        self.sticky[topic] = chosen
        return chosen
