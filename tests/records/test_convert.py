"""New records for old clients, and old clients' records as a batch; transaction markers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import (
    Codec,
    ControlType,
    EndTransactionMarker,
    Record,
    RecordBatch,
    TimestampType,
    assign_offsets,
    control_type,
    decode_marker,
    down_convert,
    encode_batch,
    encode_marker,
    encode_message_set,
    iter_batches,
    read_records,
    up_convert,
)
from tests.records.record_strategies import record_lists

PLENTY = 1 << 30


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
    batch.validate()
    assert batch.codec is codec
    timestamps = [record.timestamp if magic else -1 for record in records * 2]
    assert (batch.base_timestamp, batch.max_timestamp) == (timestamps[0], max(timestamps))
    assert [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in batch.records()] == [
        (offset, timestamp, r.key, r.value, ())
        for offset, (timestamp, r) in enumerate(zip(timestamps, records * 2, strict=True))
    ]


def test_timestamps_that_no_batch_can_tell_are_refused() -> None:
    data = encode_message_set([Record(timestamp=-(2**62)), Record(timestamp=2**63 - 1)], 1)
    with pytest.raises(KafkaError) as refused:
        up_convert(assign_offsets(data, 0), Codec.GZIP)
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP


def test_the_broker_s_time_stays_the_broker_s() -> None:
    (record,) = read_records(down_convert(encode_batch([Record(timestamp=5)], log_append_time=9), 1, 0, PLENTY))
    assert (record.timestamp, record.timestamp_type) == (9, TimestampType.LOG_APPEND_TIME)


def test_old_messages_are_passed_on_as_they_are() -> None:
    records = [Record(offset=n, value=b"x") for n in range(5)]
    v0, v1 = (encode_message_set(records, magic, Codec.GZIP) for magic in (0, 1))
    assert down_convert(v0 + v1, 1, 3, PLENTY) == v0 + v1
    v1_as_v0 = down_convert(v0 + v1, 0, 3, PLENTY)
    assert v1_as_v0.startswith(v0)
    assert [record.offset for record in read_records(v1_as_v0[len(v0) :])] == [3, 4]


def test_a_bomb_for_an_old_client_is_defused() -> None:
    """31 KB of zstd became an answer of 900 MiB: the limit held for each batch, and for nothing that was made of it."""
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
    assert [r.offset for r in read_records(down_convert(data, 1, 4, 1))] == [4]  # one at least


def test_headers_count_though_they_get_lost() -> None:
    batches = [encode_batch([Record(offset=n, headers=(("h", bytes(1_000)),))], base_offset=n) for n in range(9)]
    converted = down_convert(b"".join(batches), 1, 0, 2_500)
    assert [record.offset for record in read_records(converted)] == [0, 1]


def test_markers_are_left_out() -> None:
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
