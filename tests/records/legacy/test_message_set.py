"""Tests of message sets (formats 0 and 1), plain and compressed, and of the offsets that the broker assigns."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import (
    Codec,
    Message,
    Record,
    TimestampType,
    assign_offsets,
    encode_batch,
    encode_message_set,
    iter_batches,
    parse_batch,
    read_records,
)
from hmb.records.compression import compress
from hmb.records.crc import crc32
from hmb.records.legacy.message import encode_message
from tests.records.record_strategies import record_lists

OLD_CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
SMALL = [Record(timestamp=100 + n % 2, key=b"k%d" % n, value=b"value %d" % n) for n in range(4)]
both_magics = pytest.mark.parametrize("magic", [0, 1])
old_codecs = pytest.mark.parametrize("codec", OLD_CODECS)


def as_stored(records: list[Record], magic: int) -> list[Record]:
    """Return the records without the fields that an old format does not store."""
    kind = TimestampType.CREATE_TIME if magic else TimestampType.NO_TIMESTAMP_TYPE
    return [Record(r.offset, r.timestamp if magic else -1, r.key, r.value, (), kind) for r in records]


def at_offsets(records: list[Record], first: int, magic: int) -> list[Record]:
    moved = as_stored(records, magic)
    for offset, record in enumerate(moved, first):
        record.offset = offset
    return moved


@both_magics
@old_codecs
@given(records=record_lists())
def test_round_trip(magic: int, codec: Codec, records: list[Record]) -> None:
    data = encode_message_set(records, magic, codec, keep_offsets=True)
    assert list(read_records(data)) == as_stored(records, magic)
    if codec is not Codec.NONE:
        (wrapper,) = iter_batches(data)
        assert (wrapper.base_offset, wrapper.last_offset) == (records[0].offset, records[-1].offset)
        assert wrapper.max_timestamp == (max(record.timestamp for record in records) if magic else -1)


def test_message_v0_byte_by_byte() -> None:
    data = encode_message_set([Record(key=b"k", value=b"hello")], 0)
    assert data.hex(" ") == (
        "00 00 00 00 00 00 00 00 00 00 00 14 "  # offset, message size
        "a4 cd ab 3a 00 00 "  # CRC, magic, attributes
        "00 00 00 01 6b 00 00 00 05 68 65 6c 6c 6f"  # key, value
    )


def test_message_v1_byte_by_byte() -> None:
    data = encode_message_set([Record(timestamp=1000)], 1)
    assert data.hex(" ") == (
        "00 00 00 00 00 00 00 00 00 00 00 16 "  # offset, message size
        "a6 f6 e1 29 01 00 "  # CRC, magic, attributes
        "00 00 00 00 00 00 03 e8 ff ff ff ff ff ff ff ff"  # timestamp, null key, null value
    )


@both_magics
@old_codecs
@given(records=record_lists(), first=st.integers(0, 2**40))
def test_assigned_offsets_follow_on(magic: int, codec: Codec, records: list[Record], first: int) -> None:
    data = encode_message_set(records, magic, codec)
    plain = encode_message_set(SMALL, magic)
    assigned = assign_offsets(plain + data + plain + data, first)
    stored = at_offsets([*SMALL, *records, *SMALL, *records], first, magic)
    assert list(read_records(assigned.data)) == stored
    assert (assigned.count, assigned.last_offset) == (len(stored), stored[-1].offset)
    assert assigned.max_timestamp == max(record.timestamp for record in stored)
    for batch in iter_batches(assigned.data):
        batch.check()
        if magic and batch.max_timestamp == assigned.max_timestamp:
            assert assigned.offset_of_max_timestamp == batch.last_offset
            break


@both_magics
@old_codecs
@given(records=record_lists(), expected=st.integers(0, 2**40), first=st.integers(0, 2**40))
def test_moved_messages_equal_messages_assigned_there(
    magic: int, codec: Codec, records: list[Record], expected: int, first: int
) -> None:
    data = encode_message_set(SMALL, magic) + encode_message_set(records, magic, codec)
    assigned, there = assign_offsets(data, expected), assign_offsets(data, first)
    if expected != first and magic == 0 and codec is not Codec.NONE:
        before = bytes(assigned.data)
        # The compressed bytes of messages v0 contain absolute offsets. Without a new compression, these offsets cannot
        # change, so `move_to` returns False.
        assert not assigned.move_to(first)
        assert assigned.data == before
    else:
        assert assigned.move_to(first)
        assert assigned == there


@both_magics
@old_codecs
def test_log_append_time(magic: int, codec: Codec) -> None:
    data = encode_message_set(SMALL, magic, codec)
    assigned = assign_offsets(data + data, 10, log_append_time=5000)
    records = list(read_records(assigned.data))
    assert [record.offset for record in records] == list(range(10, 18))
    if magic == 0:  # Messages v0 have no timestamp.
        assert assigned.max_timestamp == -1
        return
    assert {(r.timestamp, r.timestamp_type) for r in records} == {(5000, TimestampType.LOG_APPEND_TIME)}
    first = next(iter_batches(assigned.data))
    assert (assigned.max_timestamp, assigned.offset_of_max_timestamp) == (5000, first.last_offset)


def test_a_v1_wrapper_with_relative_offsets_keeps_its_bytes() -> None:
    data = encode_message_set(SMALL, 1, Codec.GZIP)
    assert assign_offsets(data, 10_000).data[8:] == data[8:]


def test_a_v1_wrapper_with_other_offsets_is_repaired() -> None:
    """The broker repairs the offsets inside a v1 wrapper. Some clients write absolute offsets or zeros there."""
    inside = b"".join([encode_message(0, 1, 0, 100, None, b"%d" % n) for n in range(3)])
    wrapper = encode_message(0, 1, Codec.GZIP, 7, None, compress(Codec.GZIP, inside))
    assigned = assign_offsets(wrapper, 20)
    assert [(r.offset, r.timestamp, r.value) for r in read_records(assigned.data)] == [
        (20, 100, b"0"),
        (21, 100, b"1"),
        (22, 100, b"2"),
    ]
    assert parse_batch(assigned.data).max_timestamp == 100  # The client sent the timestamp 7.


def refuse(data: bytes, **options: int) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        assign_offsets(data, 0, **options)
    return refused.value.code


@both_magics
def test_batches_that_no_producer_may_send(magic: int) -> None:
    inner = encode_message_set(SMALL, magic, Codec.GZIP)
    nested = encode_message(0, magic, Codec.GZIP, 0, None, compress(Codec.GZIP, inner))
    mixed = encode_message_set(SMALL, magic) + encode_message_set(SMALL, 1 - magic)
    inner_mixed = encode_message(0, magic, Codec.GZIP, 0, None, compress(Codec.GZIP, mixed))
    no_value = encode_message(0, magic, Codec.GZIP, 0, None, None)
    empty = encode_message(0, magic, Codec.GZIP, 0, None, compress(Codec.GZIP, b""))
    for data in (nested, mixed, inner_mixed, no_value, empty):
        assert refuse(data) is ErrorCode.INVALID_RECORD
    zstd = encode_message(0, magic, Codec.ZSTD, 0, None, compress(Codec.ZSTD, encode_message_set(SMALL, magic)))
    assert refuse(zstd) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert refuse(encode_message(0, magic, 6, 0, None, b"")) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert refuse(encode_batch(SMALL)) is ErrorCode.CORRUPT_MESSAGE  # Record batches are not messages.
    bomb = encode_message_set([Record(value=bytes(1 << 20))], magic, Codec.GZIP)
    assert refuse(bomb, limit=1 << 19) is ErrorCode.MESSAGE_TOO_LARGE


@both_magics
@old_codecs
def test_a_thousand_wrappers_share_one_limit(magic: int, codec: Codec) -> None:
    """All wrappers of a message set share one limit for decompressed bytes.

    A wrapper is a message that contains compressed messages. Before a bug was fixed, each wrapper had its own limit.
    The broker then decompressed very many bytes from only 120 KiB of wrappers, and held the log's lock for 30 s.
    """
    wrapper = encode_message_set([Record(value=bytes(10_000))], magic, codec)
    limit = 3 * len(encode_message_set([Record(value=bytes(10_000))], magic))
    assert assign_offsets(wrapper * 3, 0, limit=limit).count == 3
    if codec is not Codec.NONE:
        assert refuse(wrapper * 4, limit=limit) is ErrorCode.MESSAGE_TOO_LARGE


def test_a_wrapper_of_very_many_messages_is_read_one_by_one() -> None:
    """A wrapper is decoded one message at a time.

    Before a bug was fixed, all its messages became objects at once, so a wrapper of a few KB needed 1 GB of memory.
    """
    inside = encode_message(0, 1, 0, 5, None, None) * 50_000
    wrapper = parse_batch(encode_message(0, 1, Codec.GZIP, 5, None, compress(Codec.GZIP, inside)))
    tracemalloc.start()
    try:
        assert sum(1 for _ in wrapper.records()) == 50_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * len(inside)


def test_a_v1_message_may_not_claim_log_append_time() -> None:
    stamped = [Record(timestamp=5, timestamp_type=TimestampType.LOG_APPEND_TIME)]
    for codec in OLD_CODECS:
        assert refuse(encode_message_set(stamped, 1, codec)) is ErrorCode.INVALID_TIMESTAMP


@both_magics
@old_codecs
def test_every_flipped_byte_after_the_crc_is_noticed(magic: int, codec: Codec) -> None:
    data = encode_message_set(SMALL[:2], magic, codec)
    ends = [0]
    for message in iter_batches(data):
        ends.append(ends[-1] + message.size)
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1
        if any(start <= position < start + 8 for start in ends):  # The offset may differ, because the broker sets it.
            assert assign_offsets(damaged, 3).data == assign_offsets(data, 3).data
        else:
            assert refuse(damaged) is ErrorCode.CORRUPT_MESSAGE


@both_magics
def test_cut_anywhere(magic: int) -> None:
    data = encode_message_set(SMALL[:1], magic)
    for size in range(len(data)):
        assert refuse(data[:size]) is ErrorCode.CORRUPT_MESSAGE
        assert refuse(data + data[:size]) is ErrorCode.CORRUPT_MESSAGE if size else True
        assert list(iter_batches(data[:size])) == []
        with pytest.raises(KafkaError):
            parse_batch(data[:size]).check()


@pytest.mark.parametrize("lengths", [(-1, 6), (2**31 - 1, 0), (0, 2**31 - 1), (5, 5), (1, -1)])
def test_lengths_that_do_not_fill_the_message(lengths: tuple[int, int]) -> None:
    """A message is rejected if its CRC is correct but the lengths of its key and its value are wrong."""
    message = bytearray(encode_message(0, 0, 0, -1, b"", b"12345"))
    message[18:26] = b"".join(length.to_bytes(4, "big", signed=True) for length in lengths)
    message[12:16] = crc32(memoryview(message)[16:]).to_bytes(4, "big")
    assert refuse(message) is ErrorCode.CORRUPT_MESSAGE
    with pytest.raises(KafkaError) as refused:
        Message.parse(message).check()
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def _set_of_values(*values: bytes | None, key: bytes | None = None) -> bytes:
    return encode_message_set([Record(0, -1, key, value) for value in values], 0)


@pytest.mark.parametrize(
    "data",
    [
        _set_of_values(*[b"same"] * 3),
        _set_of_values(*[b"same"] * 3, b"longer", b"s", *[b"same"] * 2),
        _set_of_values(b"one", b"four", b"four"),
        _set_of_values(*[b""] * 3),
        _set_of_values(*[None] * 3),
        _set_of_values(*[b"same"] * 3, key=b"key"),
        _set_of_values(b"same", b"same", b"same four") + _set_of_values(b"same", key=b"keyed"),
        _set_of_values(*[b"x"] * 300),
    ],
)
def test_messages_v0_of_one_size_get_the_offsets_that_others_get(data: bytes) -> None:
    first = 2**40
    assigned = assign_offsets(data, first)
    records = list(read_records(assigned.data))
    assert [record.offset for record in records] == list(range(first, first + len(records)))
    assert (assigned.first_offset, assigned.last_offset, assigned.count) == (first, records[-1].offset, len(records))
    assert [record.value for record in records] == [record.value for record in read_records(data)]


def test_every_flipped_byte_in_messages_of_one_size_is_noticed() -> None:
    good = _set_of_values(*[b"same"] * 3)
    length = len(good) // 3
    for position in (at for at in range(len(good)) if at % length >= 8):  # all bytes except the offsets (8 bytes each)
        bad = bytearray(good)
        bad[position] ^= 1
        with pytest.raises(KafkaError):
            assign_offsets(bad, 0)
