"""Tests of the partitioner: for each key, it chooses the same partition as Kafka's clients."""

from __future__ import annotations

import pytest

from hmb.client.producing.partitioner import murmur2, partition_of_key, partitioner_of


@pytest.mark.parametrize(
    ("key", "signed"),
    [  # values from org.apache.kafka.common.utils.UtilsTest.testMurmur2
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_kafkas(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF


def test_a_key_has_one_partition() -> None:
    assert partition_of_key(b"foobar", 6) == (-790332482 & 0x7FFFFFFF) % 6
    assert {partition_of_key(str(number).encode(), 4) for number in range(100)} == {0, 1, 2, 3}


def test_only_keys_are_hashed() -> None:
    by_murmur2, by_hash = partitioner_of("murmur2"), partitioner_of("hash")
    assert by_murmur2(None, 3) is None  # None means any partition.
    assert by_murmur2(b"foobar", 6) == partition_of_key(b"foobar", 6)
    assert {by_hash(None, 3) for _ in range(100)} == {0, 1, 2}


@pytest.mark.parametrize(
    ("key", "hashed"),  # The hashes are results of Java's "...".hashCode().
    [(b"", 0), (b"a", 97), (b"hello", 99162322), (b"kafka", 101807910), (b"polygenelubricants", -(2**31))],
)
def test_hash_is_that_of_a_java_string(key: bytes, hashed: int) -> None:
    assert partitioner_of("hash")(key, 7) == (hashed & 0x7FFFFFFF) % 7


def test_the_random_partitioner_ignores_keys() -> None:
    at_random = partitioner_of("random")
    assert {at_random(b"key", 3) for _ in range(100)} == {0, 1, 2}


def test_a_function_is_a_partitioner() -> None:
    def last(key: bytes | None, partitions: int) -> int:
        return partitions - 1

    assert partitioner_of(last) is last


def test_an_unknown_partitioner_is_refused() -> None:
    message = "partitioner must be one of murmur2, hash, random or a function, not 'sticky'"
    with pytest.raises(ValueError, match=message):
        partitioner_of("sticky")
