"""Conversion of record batches to messages for old clients, and of messages from old clients to record batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import (
    DEFAULT_LIMIT,
    Codec,
    ControlType,
    DownConversion,
    EndTransactionMarker,
    Record,
    RecordBatch,
    TimestampType,
    assign_offsets,
    control_type,
    decode_marker,
    encode_batch,
    encode_marker,
    encode_message_set,
    iter_batches,
    parse_batch,
    read_records,
    up_convert,
)
from hmb.records.changed_batch import with_records
from hmb.records.legacy.down_conversion import BATCH_SIZE, PIECE_SIZE, DamagedBatch
from hmb.storage.batches.validation import check_header
from tests.records.record_strategies import record_lists

PLENTY = 1 << 30


def conversion(data: bytes, magic: int, start_offset: int, max_bytes: int) -> DownConversion:
    return DownConversion(lambda size, at: data[at : at + size], range(len(data)), magic, start_offset, max_bytes)


def down_convert(data: bytes, magic: int, start_offset: int, max_bytes: int) -> bytes:
    measured = conversion(data, magic, start_offset, max_bytes)
    converted = b"".join(measured.pieces()) if measured.size else b""
    assert len(converted) == measured.size
    return converted


@pytest.mark.parametrize("magic", [0, 1])
@given(records=record_lists(), codec=st.sampled_from(Codec))
def test_batches_become_plain_messages_at_their_offsets(magic: int, records: list[Record], codec: Codec) -> None:
    converted = down_convert(encode_batch(records, codec=codec, keep_offsets=True), magic, 0, PLENTY)
    assert {(message.magic, message.codec) for message in iter_batches(converted)} == {(magic, Codec.NONE)}
    assert [(r.offset, r.key, r.value) for r in read_records(converted)] == [
        (r.offset, r.key, r.value) for r in records
    ]
    if magic:
        assert [r.timestamp for r in read_records(converted)] == [r.timestamp for r in records]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("inside", [Codec.NONE, Codec.GZIP])
@given(records=record_lists(), codec=st.sampled_from(Codec))
def test_messages_become_one_batch(magic: int, inside: Codec, records: list[Record], codec: Codec) -> None:
    data = encode_message_set(records, magic) + encode_message_set(records, magic, inside)
    batch = up_convert(assign_offsets(data, 0), codec)
    batch.check()
    check_header(batch)
    assert batch.codec is codec
    timestamps = [record.timestamp if magic else -1 for record in records * 2]
    assert (batch.base_timestamp, batch.max_timestamp) == (timestamps[0], max(timestamps))
    assert [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in batch.records()] == [
        (offset, timestamp, r.key, r.value, ())
        for offset, (timestamp, r) in enumerate(zip(timestamps, records * 2, strict=True))
    ]


def test_timestamps_that_no_batch_can_store_are_refused() -> None:
    data = encode_message_set([Record(timestamp=-(2**62)), Record(timestamp=2**63 - 1)], 1)
    with pytest.raises(KafkaError) as refused:
        up_convert(assign_offsets(data, 0), Codec.GZIP)
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP


def test_log_append_time_stays_log_append_time() -> None:
    (record,) = read_records(down_convert(encode_batch([Record(timestamp=5)], log_append_time=9), 1, 0, PLENTY))
    assert (record.timestamp, record.timestamp_type) == (9, TimestampType.LOG_APPEND_TIME)
    old = parse_batch(down_convert(encode_batch([Record(timestamp=5)], log_append_time=9), 0, 0, PLENTY))
    assert (old.magic, old.attributes) == (0, 0)  # Messages with magic 0 have no timestamp and no timestamp type.


def test_old_messages_are_sent_unchanged() -> None:
    records = [Record(offset=n, value=b"x") for n in range(5)]
    v0, v1 = (encode_message_set(records, magic, Codec.GZIP) for magic in (0, 1))
    assert down_convert(v0 + v1, 1, 3, PLENTY) == v0 + v1
    v1_as_v0 = down_convert(v0 + v1, 0, 3, PLENTY)
    assert v1_as_v0.startswith(v0)
    assert [record.offset for record in read_records(v1_as_v0[len(v0) :])] == [3, 4]


def test_a_conversion_for_an_old_client_respects_its_limit() -> None:
    """The total size of the messages that are converted for an old client is not above the limit of the fetch.

    Before a bug was fixed, the conversion limited only the size of each batch. A zstd batch of 31 KB became a response
    of 900 MiB.
    """
    batches = [
        encode_batch(
            [Record(offset=3 * n + i, value=bytes(100_000)) for i in range(3)], codec=Codec.ZSTD, base_offset=3 * n
        )
        for n in range(3)
    ]
    data = b"".join(batches)
    assert len(data) < 1_000
    found: list[int] = []
    while len(found) < 9:
        start = found[-1] + 1 if found else 0
        converted = down_convert(data, 1, start, 250_000)
        assert len(converted) <= 250_000
        found += [record.offset for record in read_records(converted)]
    assert found == list(range(9))
    assert [r.offset for r in read_records(down_convert(data, 1, 4, 1))] == [4]  # At least one message is returned.


def batches_of(*sizes: int) -> list[bytes]:
    """Return a batch of two records for each size. The value of the first record has this size."""
    return [
        encode_batch([Record(value=bytes(size)), Record(value=b"second")], codec=Codec.GZIP, base_offset=2 * number)
        for number, size in enumerate(sizes)
    ]


def changed(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", Codec)
def test_a_damaged_batch_became_messages_with_right_crcs(magic: int, codec: Codec) -> None:
    """A damaged batch is not converted.

    Before a bug was fixed, the conversion did not check the batch's CRC. It gave each converted record a new, correct
    CRC, so nobody could notice the damage.
    """
    whole = [encode_batch([Record(value=b"a"), Record(value=b"b")], base_offset=2 * n, codec=codec) for n in range(3)]
    size = len(whole[0])
    for position in range(21, size):  # the bytes that the CRC covers
        data = whole[0] + changed(whole[1], position) + whole[2]
        assert [record.offset for record in read_records(down_convert(data, magic, 0, PLENTY))] == [0, 1]
        with pytest.raises(DamagedBatch) as damage:
            conversion(data[size:], magic, 2, PLENTY)
        assert (damage.value.code, damage.value.position) == (ErrorCode.CORRUPT_MESSAGE, 0)
        assert damage.value.batch.base_offset == 2
        assert [record.offset for record in read_records(down_convert(data[2 * size :], magic, 4, PLENTY))] == [4, 5]


def test_a_damaged_wrapper_is_not_converted_either() -> None:
    data = encode_message_set([Record(value=b"a"), Record(value=b"b")], 1, Codec.GZIP)
    with pytest.raises(DamagedBatch):
        conversion(changed(data, len(data) - 1), 0, 0, PLENTY)
    damaged = changed(data, len(data) - 1)
    assert down_convert(damaged, 1, 0, PLENTY) == damaged  # A client that reads magic 1 needs no conversion.


def test_records_that_cannot_be_read_end_the_messages() -> None:
    """If a record has a wrong length, the conversion returns only the records before it.

    A fetch that begins at the record with the wrong length gets an error.
    """
    frame = RecordBatch.parse(encode_batch([Record(value=b"a"), Record(value=b"b")]))
    content = bytearray(frame.uncompressed())
    content[-3] = 98  # The length of the second value is now 49, not 1.
    wrong = bytes(with_records(frame, content, 2, -1))
    assert [record.value for record in read_records(down_convert(wrong, 1, 0, PLENTY))] == [b"a"]
    with pytest.raises(KafkaError) as refused:
        conversion(wrong, 1, 1, PLENTY)
    assert refused.value.code is ErrorCode.INVALID_RECORD


def test_a_conversion_holds_one_batch_and_one_piece_in_memory() -> None:
    """During a conversion, the broker keeps only one batch and one piece of the result in memory.

    Before a bug was fixed, the broker kept the whole result in memory until the client had received it. For 50 clients
    that did not read their responses, the broker needed 4 GB of memory.
    """
    data = b"".join(batches_of(*[500_000] * 40))
    measured = conversion(data, 1, 0, PLENTY)
    assert measured.size > 20_000_000
    assert measured.memory < 2 * BATCH_SIZE
    assert max(map(len, measured.pieces())) <= BATCH_SIZE + PIECE_SIZE


def test_a_large_batch_is_converted_over_several_fetches() -> None:
    records = [Record(value=b"%d" % n * 1_000) for n in range(1_000)]
    data = encode_batch(records, codec=Codec.ZSTD)
    found: list[Record] = []
    rounds = 0
    while len(found) < len(records):
        measured = conversion(data, 1, len(found), PLENTY)
        assert measured.size <= BATCH_SIZE and measured.memory < 2 * BATCH_SIZE
        found += read_records(b"".join(measured.pieces()))
        rounds += 1
    assert [(record.offset, record.value) for record in found] == [(n, r.value) for n, r in enumerate(records)]
    assert 2 <= rounds <= 5


def test_a_record_larger_than_a_batch_s_share_is_converted_whole_and_not_copied() -> None:
    data = encode_batch([Record(key=b"k", value=bytes(3 * BATCH_SIZE)), Record(value=b"next")], codec=Codec.ZSTD)
    measured = conversion(data, 0, 0, 10)
    assert measured.memory > DEFAULT_LIMIT  # `memory` includes DEFAULT_LIMIT bytes for the decompressed batch.
    (record,) = read_records(b"".join(measured.pieces()))
    assert (record.offset, record.key, record.value) == (0, b"k", bytes(3 * BATCH_SIZE))
    assert [type(piece) for piece in measured.pieces()] == [bytes, memoryview]


def test_a_batch_that_the_region_cuts_is_left_out() -> None:
    first, second = batches_of(10, 200_000)
    for end in range(len(first), len(first) + len(second)):
        assert [r.offset for r in read_records(down_convert((first + second)[:end], 1, 0, PLENTY))] == [0, 1]


@given(records=record_lists(40), codec=st.sampled_from(Codec), start=st.integers(0, 400), max_bytes=st.integers(1, 900))
def test_the_computed_size_is_the_size_sent(records: list[Record], codec: Codec, start: int, max_bytes: int) -> None:
    data = encode_batch(records, codec=codec, keep_offsets=True)
    found = list(read_records(down_convert(data, 1, start, max_bytes)))
    expected = [record for record in records if record.offset >= start]
    assert [(r.offset, r.value) for r in found] == [(r.offset, r.value) for r in expected[: len(found)]]
    assert bool(found) == bool(expected)


def test_lost_headers_count_as_memory() -> None:
    batches = [encode_batch([Record(offset=n, headers=(("h", bytes(1_000)),))], base_offset=n) for n in range(9)]
    converted = down_convert(b"".join(batches), 1, 0, 2_500)
    assert [record.offset for record in read_records(converted)] == [0, 1]


def test_markers_are_omitted() -> None:
    data = encode_batch([Record(value=b"a")], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    marker = encode_marker(EndTransactionMarker(ControlType.ABORT, 4), 1000, 7, 0, base_offset=1)
    later = encode_batch([Record(value=b"b")], base_offset=2)
    converted = down_convert(data + marker + later, 1, 0, PLENTY)
    assert [(r.offset, r.value) for r in read_records(converted)] == [(0, b"a"), (2, b"b")]
    assert [(r.offset, r.value) for r in read_records(data + marker + later)] == [(0, b"a"), (2, b"b")]
    assert down_convert(marker, 0, 1, PLENTY) == b""


def test_markers() -> None:
    marker = EndTransactionMarker(ControlType.COMMIT, 12)
    batch = RecordBatch.parse(encode_marker(marker, 1000, 7, 3, leader_epoch=2))
    batch.check()
    assert batch.is_control and batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 3, -1)
    (record,) = batch.records()
    assert record.key == bytes.fromhex("0000 0001") and record.value == bytes.fromhex("0000 0000000c")
    assert decode_marker(record) == marker


def test_control_records_of_other_kinds() -> None:
    assert control_type(Record(key=bytes.fromhex("0000 0063"))) is ControlType.UNKNOWN
    for record in (
        Record(),
        Record(key=b"\0\0"),
        Record(key=bytes(4)),
        Record(key=bytes.fromhex("00000002"), value=bytes(6)),
    ):
        with pytest.raises(KafkaError):
            decode_marker(record)
