"""`raw_records` and `decode_records` return the same values for each record, or both functions report damage."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hmb.protocol.errors import KafkaError
from hmb.records import Record, RecordBatch, encode_batch
from hmb.records.fast.raw_records import raw_records
from tests.records.record_strategies import record_lists

Facts = tuple[int, int, bytes | None, bool]  # offset, timestamp delta (ms), key, whether the value is missing


def decoded(batch: RecordBatch) -> list[Facts]:
    return [(it.offset, it.timestamp - batch.base_timestamp, it.key, it.value is None) for it in batch.records()]


def found(batch: RecordBatch, first: int = 0) -> list[Facts]:
    data = batch.uncompressed()
    raws = raw_records(batch, data, first)
    return [(raw.offset, raw.timestamp_delta, raw.key(data), raw.is_tombstone) for raw in raws]


@given(record_lists(), st.data())
def test_the_same_facts_as_in_decoded_records(records: list[Record], draw: st.DataObject) -> None:
    batch = RecordBatch.parse(encode_batch(records, keep_offsets=True))
    assert found(batch) == decoded(batch)
    first = draw.draw(st.integers(0, len(records)))
    every = RecordBatch.parse(encode_batch(records))
    assert found(every, first) == decoded(every)[first:]


@given(record_lists(), st.data())
def test_damaged_records_give_the_same_facts_or_an_error(records: list[Record], draw: st.DataObject) -> None:
    """`raw_records` does not decode headers, so it may accept a damaged record that `decode_records` rejects."""
    encoded = bytearray(encode_batch(records, keep_offsets=True))
    encoded[draw.draw(st.integers(61, len(encoded) - 1))] = draw.draw(st.integers(0, 255))
    batch = RecordBatch.parse(bytes(encoded))
    try:
        expected = decoded(batch)
    except KafkaError:
        return
    try:
        facts = found(batch)
    except KafkaError:  # Unlike `decode_records`, `raw_records` rejects offsets that do not ascend.
        offsets = [offset for offset, *_ in expected]
        assert offsets != sorted(set(offsets)) or min(time for _, time, *_ in expected) < -(1 << 61)
    else:
        assert facts == expected


def test_any_negative_length_of_a_value_stands_for_a_missing_value() -> None:
    """Kafka writes -1 for a missing value, and it interprets every negative length as a missing value."""
    encoded = bytearray(encode_batch([Record(timestamp=0, key=b"key", value=None)]))
    assert encoded[-2:] == b"\x01\x00"  # byte 01: the length of the value is -1; byte 00: the number of headers is 0
    encoded[-2] = 0x4B  # Now the length of the value is -38.
    batch = RecordBatch.parse(bytes(encoded))
    assert found(batch) == decoded(batch) == [(0, 0, b"key", True)]
