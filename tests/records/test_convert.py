"""New records for old clients; transaction markers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.protocol.errors import KafkaError
from hmb.records import (
    Codec,
    ControlType,
    EndTransactionMarker,
    Record,
    RecordBatch,
    TimestampType,
    control_type,
    decode_marker,
    down_convert,
    encode_batch,
    encode_marker,
    encode_message_set,
    iter_batches,
    read_records,
)
from tests.records.record_strategies import record_lists


@pytest.mark.parametrize("magic", [0, 1])
@given(records=record_lists(), codec=st.sampled_from(Codec))
def test_batches_become_plain_messages_at_their_offsets(magic: int, records: list[Record], codec: Codec) -> None:
    converted = down_convert(encode_batch(records, codec=codec, keep_offsets=True), magic, 0)
    assert {(message.magic, message.codec) for message in iter_batches(converted)} == {(magic, Codec.NONE)}
    assert [(r.offset, r.key, r.value) for r in read_records(converted)] == [
        (r.offset, r.key, r.value) for r in records
    ]
    if magic:
        assert [r.timestamp for r in read_records(converted)] == [r.timestamp for r in records]


def test_the_broker_s_time_stays_the_broker_s() -> None:
    (record,) = read_records(down_convert(encode_batch([Record(timestamp=5)], log_append_time=9), 1, 0))
    assert (record.timestamp, record.timestamp_type) == (9, TimestampType.LOG_APPEND_TIME)


def test_old_messages_are_passed_on_as_they_are() -> None:
    records = [Record(offset=n, value=b"x") for n in range(5)]
    v0, v1 = (encode_message_set(records, magic, Codec.GZIP) for magic in (0, 1))
    assert down_convert(v0 + v1, 1, 3) == v0 + v1
    v1_as_v0 = down_convert(v0 + v1, 0, 3)
    assert v1_as_v0.startswith(v0)
    assert [record.offset for record in read_records(v1_as_v0[len(v0) :])] == [3, 4]


def test_markers_are_left_out() -> None:
    data = encode_batch([Record(value=b"a")], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    marker = encode_marker(EndTransactionMarker(ControlType.ABORT, 4), 1000, 7, 0, base_offset=1)
    later = encode_batch([Record(value=b"b")], base_offset=2)
    converted = down_convert(data + marker + later, 1, 0)
    assert [(r.offset, r.value) for r in read_records(converted)] == [(0, b"a"), (2, b"b")]
    assert [(r.offset, r.value) for r in read_records(data + marker + later)] == [(0, b"a"), (2, b"b")]
    assert down_convert(marker, 0, 1) == b""


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
