"""Keeps the queues of all partitions, and chooses the partition of a record without a key.

The producer may choose any partition for a record without a key. If it chose a new partition for each record,
the batches would be small. It therefore sends all records without a key to the same partition, until the batch
is full or the producer sends it. Then it chooses a partition again (KIP-480). The result is fewer and larger
batches.

To choose a partition, the producer selects two partitions at random, and takes the one with the shorter queue.
If a broker is slow, the queues of its partitions are long, so this broker gets fewer records.

HMB's producer chooses a partition again after each batch. Kafka's producer does so after at least `batch.size`
bytes of records (KIP-794). Both producers prefer partitions with short queues.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from hmb.client.producing.batch import PartitionQueue, ProducerBatch, SenderQueues
from hmb.protocol.topics import TopicPartition


class PartitionQueues:
    """The queues of all partitions to which the producer has sent records.

    Callers must hold the lock of the accumulator, the part of the producer that collects records in batches.
    `sticky` maps each topic to one of its queues: the next record without a key goes to this queue.
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
        """Choose the queue that receives the topic's next records without a key, and return this queue.

        `partitions` is the number of the topic's partitions.
        """
        drawn = random.sample(range(partitions), min(2, partitions))
        chosen = min([self.of(topic, number) for number in drawn], key=lambda queue: len(queue.batches))
        self.sticky[topic] = chosen
        return chosen
