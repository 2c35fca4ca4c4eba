"""Partitioners: functions that choose the partition of a record.

All records with one key go to the same partition, so that their order is kept. The partition is the hash of the key
modulo the number of partitions. Kafka 0.7 called this semantic partitioning (Kafka 0.7 design, "Semantic
partitioning"). All clients must use the same hash, or two producers would write one key to two partitions. Kafka's Java
client uses Austin Appleby's murmur2 with 32 bits and a seed of its own, and every client follows it since Kafka 0.8.2.

A record without a key may go to any partition. If the partition changed after each record, the producer would make many
small batches. It therefore uses one partition until its batch is closed (see `accumulator`).

    murmur2   The key decides by murmur2, and records without a key stay together. This is Kafka's default.
    hash      The key decides by Java's hash of a string, and records without a key are spread at random. This was the
              default of Kafka 0.7.
    random    All records are spread at random, whether they have keys or not.

A program can also pass a function, like the `Partitioner` of Kafka 0.7. The function receives the key and the number of
partitions. It returns a partition, or None for any partition.

For example, the default partitioner chooses partition 1 of 2 for the key b"Seattle", in HMB as in Kafka.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import lru_cache
from struct import unpack_from

Partitioner = Callable[[bytes | None, int], int | None]

SEED = 0x9747B28C
MULTIPLIER = 0x5BD1E995
UINT32 = 0xFFFFFFFF
POSITIVE = 0x7FFFFFFF  # all bits except the sign bit
RECENT_KEYS = 4096  # murmur2 takes 1 to 5 us in Python, a cached key 0.1 us; many topics have few keys


def murmur2(data: bytes) -> int:
    """Return Kafka's hash of a key: murmur2 with 32 bits, unsigned."""
    length = len(data)
    hashed = SEED ^ length
    words = length >> 2
    for word in unpack_from(f"<{words}I", data):
        mixed = word * MULTIPLIER & UINT32
        hashed = (hashed * MULTIPLIER ^ (mixed ^ mixed >> 24) * MULTIPLIER) & UINT32
    if rest := data[words * 4 :]:
        hashed = (hashed ^ int.from_bytes(rest, "little")) * MULTIPLIER & UINT32
    hashed = (hashed ^ hashed >> 13) * MULTIPLIER & UINT32
    return hashed ^ hashed >> 15


@lru_cache(RECENT_KEYS)
def partition_of_key(key: bytes, partitions: int) -> int:
    """Return the partition that Kafka's default partitioner chooses for a key: its hash modulo `partitions`."""
    return (murmur2(key) & POSITIVE) % partitions


def java_hash(data: bytes) -> int:
    """Return Java's String.hashCode, as an unsigned number, of the text that these bytes encode (Latin 1)."""
    hashed = 0
    for byte in data:
        hashed = (hashed * 31 + byte) & UINT32
    return hashed


def by_murmur2(key: bytes | None, partitions: int) -> int | None:
    """Choose the partition by murmur2 of the key. Return None for a record without a key."""
    return None if key is None else partition_of_key(key, partitions)


@lru_cache(RECENT_KEYS)
def _by_hash_of_key(key: bytes, partitions: int) -> int:
    return (java_hash(key) & POSITIVE) % partitions


def by_hash(key: bytes | None, partitions: int) -> int:
    """Choose the partition by Java's hash of the key, or at random for a record without a key."""
    return random.randrange(partitions) if key is None else _by_hash_of_key(key, partitions)


def at_random(key: bytes | None, partitions: int) -> int:
    """Choose a random partition for every record, also for records with a key."""
    return random.randrange(partitions)


PARTITIONERS: dict[str, Partitioner] = {"murmur2": by_murmur2, "hash": by_hash, "random": at_random}


def partitioner_of(chosen: str | Partitioner) -> Partitioner:
    """Return the partitioner with this name. A function is returned unchanged."""
    if not isinstance(chosen, str):
        return chosen
    if chosen not in PARTITIONERS:
        raise ValueError(f"partitioner is one of {', '.join(PARTITIONERS)} or a function, not {chosen!r}")
    return PARTITIONERS[chosen]
