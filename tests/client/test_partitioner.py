"""Keys go where Kafka's own clients send them."""

import pytest

from hmb.client.partitioner import StickyPartitioner, murmur2, partition_of_key


@pytest.mark.parametrize(
    ("key", "signed"),
    [  # from org.apache.kafka.common.utils.UtilsTest.testMurmur2
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


def test_records_without_a_key_stick_until_a_batch_is_full() -> None:
    sticky = StickyPartitioner(batch_size=100)
    chosen = [sticky.partition("t", 3, 10) for _ in range(30)]
    assert len(set(chosen[:10])) == len(set(chosen[10:20])) == len(set(chosen[20:])) == 1
    assert chosen[0] != chosen[10] != chosen[20]


def test_a_topic_of_one_partition_has_no_choice() -> None:
    sticky = StickyPartitioner(batch_size=1)
    assert [sticky.partition("t", 1, 10) for _ in range(3)] == [0, 0, 0]
