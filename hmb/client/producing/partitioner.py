"""Which partition a record goes to.

A record with a key always goes to the same partition, so that all records of one key stay in order: hash the key,
modulo the number of partitions. Kafka 0.7 called this semantic partitioning. Every client has to agree on the hash, or
two producers spread one key over two partitions; Kafka's Java client chose Austin Appleby's murmur2 (32 bits, its own
seed), and that is what counts since 0.8.2.

A record without a key may go anywhere. Taking turns record by record makes many small batches, so the producer sticks
to one partition while its batch gathers there (see `accumulator`).

    murmur2   keys by murmur2, others stick: Kafka's default
    hash      Kafka 0.7's default: hash(key) modulo the partitions (with Java's hash of a String), others at random
    random    all at random, keys or not: Kafka 0.7's for records without a key

or any function of the key and the number of partitions, as the `Partitioner` of 0.7; None: anywhere, so it sticks.
"""

import random
from collections.abc import Callable
from functools import lru_cache
from struct import unpack_from

Partitioner = Callable[[bytes | None, int], int | None]

SEED = 0x9747B28C
MULTIPLIER = 0x5BD1E995
UINT32 = 0xFFFFFFFF
POSITIVE = 0x7FFFFFFF  # without the sign bit
RECENT_KEYS = 4096  # murmur2 costs 1 to 5 us in Python, looking a key up 0.1 us; many topics have few keys


def murmur2(data: bytes) -> int:
    """Kafka's hash of a key: murmur2 in 32 bits, unsigned."""
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
    """The partition of a key, as Kafka's default partitioner has it: the sign bit is dropped, then modulo."""
    return (murmur2(key) & POSITIVE) % partitions


def java_hash(data: bytes) -> int:
    """Java's String.hashCode of a text whose characters are these bytes (ASCII, Latin 1); unsigned."""
    hashed = 0
    for byte in data:
        hashed = (hashed * 31 + byte) & UINT32
    return hashed


def by_murmur2(key: bytes | None, partitions: int) -> int | None:
    return None if key is None else partition_of_key(key, partitions)


@lru_cache(RECENT_KEYS)
def _by_hash_of_key(key: bytes, partitions: int) -> int:
    return (java_hash(key) & POSITIVE) % partitions


def by_hash(key: bytes | None, partitions: int) -> int:
    return random.randrange(partitions) if key is None else _by_hash_of_key(key, partitions)


def at_random(key: bytes | None, partitions: int) -> int:
    return random.randrange(partitions)


PARTITIONERS: dict[str, Partitioner] = {"murmur2": by_murmur2, "hash": by_hash, "random": at_random}


def partitioner_of(chosen: str | Partitioner) -> Partitioner:
    """The function behind a name; a function stays itself."""
    if not isinstance(chosen, str):
        return chosen
    if chosen not in PARTITIONERS:
        raise ValueError(f"partitioner is one of {', '.join(PARTITIONERS)} or a function, not {chosen!r}")
    return PARTITIONERS[chosen]
