"""Partitioners: functions that choose the partition of a record.

The partitioners murmur2 and hash compute the partition from the key: the hash of the key modulo the number of
partitions. So records with the same key go to the same partition, and consumers read them in the order in which
they were sent. Kafka 0.7 called this semantic partitioning (Kafka 0.7 design, "Semantic partitioning").

All clients that send to a topic must use the same hash function. Otherwise, they would send records with the
same key to different partitions. Kafka's Java client has used murmur2 since version 0.8.2. This hash function
is by Austin Appleby. Kafka uses it with 32 bits and its own seed.

A record without a key may go to any partition. If such records went to a new partition each time, each batch
would be small. The producer therefore sends these records to one partition until its batch is full or sent.
Only then does it choose another partition (see `queues`). A program can choose one of three partitioners by
name:
    murmur2   the hash of the key is murmur2; records without a key go to the same partition until their batch
              is full or sent; this is Kafka's default
    hash      the hash of the key is Java's hash of a string; each record without a key goes to a random
              partition; this was the default of Kafka 0.7
    random    each record goes to a random partition, even if it has a key

A program can also pass its own function as the partitioner. The function takes the key and the number of partitions. It
returns a partition, or None if the producer may choose any partition.

For example, a topic has two partitions. For the key b"Seattle", the default partitioner chooses partition 1, in HMB as
in Kafka.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import lru_cache
from struct import unpack_from

from hmb.defaults import PARTITIONER_NAMES
from hmb.protocol.topics import java_hash

Partitioner = Callable[[bytes | None, int], int | None]

SEED = 0x9747B28C
MULTIPLIER = 0x5BD1E995
UINT32 = 0xFFFFFFFF
POSITIVE = 0x7FFFFFFF  # all bits except the sign bit
RECENT_KEYS = 4096  # the number of cached results; a cached result takes 0.1 us, and a call of murmur2 takes 1 to 5 us


def murmur2(data: bytes) -> int:
    """Return Kafka's hash of a key: murmur2, as an unsigned number of 32 bits."""
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
    """Return the partition of a key in Kafka's default partitioner: the hash of the key modulo `partitions`."""
    return (murmur2(key) & POSITIVE) % partitions


def by_murmur2(key: bytes | None, partitions: int) -> int | None:
    """Choose the partition from the murmur2 hash of the key. Return None for a record without a key."""
    return None if key is None else partition_of_key(key, partitions)


@lru_cache(RECENT_KEYS)
def _by_hash_of_key(key: bytes, partitions: int) -> int:
    return (java_hash(key.decode("latin-1")) & POSITIVE) % partitions


def by_hash(key: bytes | None, partitions: int) -> int:
    """Choose the partition from Java's hash of the key. Choose a random partition for a record without a key."""
    return random.randrange(partitions) if key is None else _by_hash_of_key(key, partitions)


def at_random(key: bytes | None, partitions: int) -> int:
    """Choose a random partition for each record. The key has no influence."""
    return random.randrange(partitions)


PARTITIONERS: dict[str, Partitioner] = dict(zip(PARTITIONER_NAMES, (by_murmur2, by_hash, at_random), strict=True))


def partitioner_of(chosen: str | Partitioner) -> Partitioner:
    """Return a partitioner. `chosen` is the name of a partitioner, or a function, which is returned unchanged."""
    if not isinstance(chosen, str):
        return chosen
    if chosen not in PARTITIONERS:
        raise ValueError(f"partitioner must be one of {', '.join(PARTITIONERS)} or a function, not {chosen!r}")
    return PARTITIONERS[chosen]
