"""Which partition a record goes to.

A record with a key always goes to the same partition, so that all records of one key stay in order: hash the key,
modulo the number of partitions. Every client has to agree on the hash, or two producers spread one key over two
partitions; Kafka's Java client chose Austin Appleby's murmur2 (32 bits, its own seed), and that is what counts.

A record without a key may go anywhere. Taking turns record by record makes many small batches, so the producer
sticks to one partition until it has filled a batch there, then goes to another one (KIP-480, KIP-794: "sticky").
"""

import random

SEED = 0x9747B28C
MULTIPLIER = 0x5BD1E995
UINT32 = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Kafka's hash of a key: murmur2 in 32 bits, unsigned."""
    length = len(data)
    hashed = SEED ^ length
    whole = length & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little") * MULTIPLIER & UINT32
        word = (word ^ word >> 24) * MULTIPLIER & UINT32
        hashed = hashed * MULTIPLIER & UINT32 ^ word
    if rest := data[whole:]:
        hashed = (hashed ^ int.from_bytes(rest, "little")) * MULTIPLIER & UINT32
    hashed = (hashed ^ hashed >> 13) * MULTIPLIER & UINT32
    return hashed ^ hashed >> 15


def partition_of_key(key: bytes, partitions: int) -> int:
    """The partition of a key, as Kafka's default partitioner has it: the sign bit is dropped, then modulo."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class StickyPartitioner:
    """The partition for records without a key: the same one until `batch_size` bytes went to it."""

    def __init__(self, batch_size: int) -> None:
        self._batch_size = batch_size
        self._current: dict[str, tuple[int, int]] = {}  # topic -> (partition, bytes still to go there)

    def partition(self, topic: str, partitions: int, size: int) -> int:
        partition, left = self._current.get(topic, (-1, 0))
        if left <= 0 or partition >= partitions:
            others = [number for number in range(partitions) if number != partition]
            partition, left = random.choice(others or [0]), self._batch_size
        self._current[topic] = (partition, left - size)
        return partition
