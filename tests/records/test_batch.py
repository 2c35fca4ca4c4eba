"""Tests of record batches (format 2): decoding returns the encoded records, and detects every damage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hmb.records.record as record_module
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import Codec, Record, RecordBatch, TimestampType, encode_batch, iter_batches, parse_batch, read_records
from hmb.records.changed_batch import with_codec, with_log_append_time
from hmb.records.producer_numbers import increment_sequence
from tests.records.record_strategies import record_lists

SMALL = [Record(timestamp=1_700_000_000_000 + n, key=b"k%d" % n, value=b"value %d" % n) for n in range(3)]


@pytest.mark.parametrize("codec", Codec)
@given(records=record_lists())
def test_round_trip(codec: Codec, records: list[Record]) -> None:
    batch = RecordBatch.parse(encode_batch(records, codec=codec, keep_offsets=True))
    batch.check()
    assert list(batch.records()) == records
    assert batch.codec is codec
    assert (batch.base_offset, batch.last_offset) == (records[0].offset, records[-1].offset)
    assert batch.base_timestamp == records[0].timestamp
    assert batch.max_timestamp == max(record.timestamp for record in records)
    assert batch.records_count == len(records)


def test_the_example_of_a_record_has_the_bytes_of_its_docstring() -> None:
    example = next(line for line in (record_module.__doc__ or "").splitlines() if line.startswith("    12 | 00"))
    encoded = record_module.encode_records([Record(offset=1, timestamp=5, key=b"k", value=b"ab")], 0, 0)
    assert bytes.fromhex(example.replace("|", "")) == encoded


def test_the_header_byte_by_byte() -> None:
    """The test compares each field of the header with the layout in KIP-98.

    The CRC field is the CRC-32C of all bytes that follow this field.
    """
    data = encode_batch(
        [Record(timestamp=1000, value=b"hi")],
        base_offset=7,
        leader_epoch=3,
        producer_id=9,
        producer_epoch=1,
        base_sequence=5,
    )
    assert data.hex(" ") == (
        "00 00 00 00 00 00 00 07 "  # base offset
        "00 00 00 3a 00 00 00 03 02 "  # batch length, partition leader epoch, magic
        "7c 12 ae 88 "  # CRC
        "00 00 00 00 00 00 "  # attributes, last offset delta
        "00 00 00 00 00 00 03 e8 00 00 00 00 00 00 03 e8 "  # base timestamp, max timestamp
        "00 00 00 00 00 00 00 09 00 01 00 00 00 05 "  # producer id, epoch, base sequence
        "00 00 00 01 "  # number of records
        "10 00 00 00 01 04 68 69 00"  # length, attributes, deltas, null key, "hi", no headers
    )


def test_offsets_are_counted_unless_kept() -> None:
    records = [Record(offset=50), Record(offset=90)]
    assert [record.offset for record in read_records(encode_batch(records, base_offset=4))] == [4, 5]
    assert [record.offset for record in read_records(encode_batch(records, keep_offsets=True))] == [50, 90]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_every_flipped_byte_after_the_crc_is_noticed(codec: Codec) -> None:
    data = encode_batch(SMALL, codec=codec, producer_id=1, producer_epoch=0, base_sequence=0)
    for position in range(len(data)):
        for bit in (1, 0x80):
            damaged = bytearray(data)
            damaged[position] ^= bit
            if position < 8 or 12 <= position < 16:  # The broker changes the base offset and the leader epoch.
                parse_batch(damaged).check()
                continue
            with pytest.raises(KafkaError) as refused:
                parse_batch(damaged).check()
            assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_cut_anywhere() -> None:
    data = encode_batch(SMALL)
    for size in range(len(data)):
        assert list(iter_batches(data[:size])) == []
        with pytest.raises(KafkaError) as refused:
            parse_batch(data[:size]).check()
        assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert [batch.size for batch in iter_batches(data + data[:-1])] == [len(data)]


def test_the_header_alone_can_be_parsed() -> None:
    data = encode_batch(SMALL, base_offset=12)
    batch = RecordBatch.parse(b"before" + data[:61], 6)
    assert (batch.base_offset, batch.last_offset, batch.size) == (12, 14, len(data))


def test_stamped_changes_16_bytes_and_copies_nothing() -> None:
    data = encode_batch(SMALL)
    head, rest = RecordBatch.parse(data).with_base_offset(1234, 5)
    assert len(head) == 16 and isinstance(rest, memoryview) and rest.obj is data
    stamped = RecordBatch.parse(head + bytes(rest))
    stamped.check()
    assert (stamped.base_offset, stamped.partition_leader_epoch, stamped.last_offset) == (1234, 5, 1236)


@given(records=record_lists(), codec=st.sampled_from(Codec))
def test_log_append_time(records: list[Record], codec: Codec) -> None:
    batch = RecordBatch.parse(encode_batch(records, codec=codec, producer_id=3, producer_epoch=0, base_sequence=8))
    stamped = with_log_append_time(batch, 77)
    stamped.check()
    assert {(record.timestamp, record.timestamp_type) for record in stamped.records()} == {
        (77, TimestampType.LOG_APPEND_TIME)
    }
    assert stamped[5:8] == (batch.attributes | 8, batch.last_offset_delta, batch.base_timestamp)
    assert stamped[9:13] == batch[9:13]
    assert encode_batch(records, codec=codec, log_append_time=77)[61:] == batch.view[61:]


@given(records=record_lists(), before=st.sampled_from(Codec), after=st.sampled_from(Codec))
def test_another_codec_changes_nothing_else(records: list[Record], before: Codec, after: Codec) -> None:
    ids = {"producer_id": 9, "producer_epoch": 3, "base_sequence": 70, "transactional": True}
    sent = RecordBatch.parse(encode_batch(records, codec=before, keep_offsets=True, leader_epoch=4, **ids))
    changed = with_codec(sent, after)
    changed.check()
    assert changed.codec is after
    assert list(changed.records()) == list(sent.records()) == records
    free = {"batch_length": 0, "crc": 0, "attributes": 0, "view": memoryview(b"")}
    assert changed._replace(**free) == sent._replace(**free)
    assert changed.attributes & ~7 == sent.attributes & ~7


def test_a_bomb_is_not_compressed_again() -> None:
    bomb = RecordBatch.parse(encode_batch([Record(value=bytes(1 << 20))], codec=Codec.ZSTD))
    with pytest.raises(KafkaError) as refused:
        with_codec(bomb, Codec.GZIP, limit=1 << 19)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_sequence_numbers_wrap_around() -> None:
    data = encode_batch(SMALL, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2)
    assert RecordBatch.parse(data).last_sequence == 0
    assert RecordBatch.parse(encode_batch(SMALL)).last_sequence == -1
    assert increment_sequence(2**31 - 1, 1) == 0
    assert increment_sequence(1, -3) == 2**31 - 2


@pytest.mark.parametrize("magic", [3, 127, 255])
def test_unknown_magic(magic: int) -> None:
    data = bytearray(encode_batch(SMALL))
    data[16] = magic
    for read in (parse_batch, lambda buffer: list(iter_batches(buffer))):
        with pytest.raises(KafkaError) as refused:
            read(data)
        assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("base_offset", "base_timestamp", "last_offset_delta"), [(2**63 - 2, 0, 2), (0, 2**63 - 2, 2), (0, 0, 1)]
)
def test_records_outside_of_their_batch(base_offset: int, base_timestamp: int, last_offset_delta: int) -> None:
    """The decoder rejects a record whose offset or timestamp is too large for a signed number of 64 bits.

    The decoder also rejects a record whose offset delta is greater than the last offset delta in the batch's header.
    """
    batch = RecordBatch.parse(encode_batch(SMALL))._replace(
        base_offset=base_offset, base_timestamp=base_timestamp, last_offset_delta=last_offset_delta
    )
    with pytest.raises(KafkaError) as refused:
        list(batch.records())
    assert refused.value.code is ErrorCode.INVALID_RECORD


def test_records_that_do_not_fill_their_batch() -> None:
    """The decoder rejects a batch if bytes are missing or follow the last record, or if a length is malformed."""
    content = encode_batch(SMALL)[61:]
    for header_of, body in (
        (SMALL[:2], content),
        (SMALL, content[:-1]),
        (SMALL, content + b"\0"),
        (SMALL, b"\xff" * 30),
    ):
        batch = RecordBatch.parse(encode_batch(header_of))
        with pytest.raises(KafkaError) as refused:
            list(batch._replace(view=memoryview(bytes(61) + body)).records())
        assert refused.value.code is ErrorCode.INVALID_RECORD
