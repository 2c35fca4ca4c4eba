"""`intact_batch` accepts the same batches as `RecordBatch.parse` and `check`, and returns the same fields."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hmb.protocol.errors import KafkaError
from hmb.records import Codec, Record, RecordBatch, encode_batch, parse_batch
from hmb.records.batch import RECORD_BATCH_OVERHEAD
from hmb.records.crc import crc32c
from hmb.records.fast.batch_check import CheckedBatch, intact_batch
from tests.records.record_strategies import record_lists


def readable(data: bytes, position: int) -> CheckedBatch | None:
    """Check the batch at `position` with the simple, slower code.

    Return the batch, or None if it is damaged or not a record batch.
    """
    try:
        batch = parse_batch(data, position)
        batch.check()
    except KafkaError:
        return None
    assert isinstance(batch, RecordBatch)
    fields = batch.last_offset, batch.max_timestamp, batch.producer_id, batch.attributes
    return CheckedBatch(batch.base_offset, batch.size, *fields)


@given(
    records=record_lists(),
    codec=st.sampled_from([Codec.NONE, Codec.GZIP]),
    producer_id=st.integers(-1, 2**63 - 1),
    before=st.binary(max_size=3),
    after=st.binary(max_size=3),
    transactional=st.booleans(),
)
def test_an_intact_batch_has_the_same_fields(
    records: list[Record], codec: Codec, producer_id: int, before: bytes, after: bytes, transactional: bool
) -> None:
    encoded = encode_batch(
        records,
        keep_offsets=True,
        codec=codec,
        transactional=transactional,
        producer_id=producer_id,
        producer_epoch=3,
        base_sequence=8,
    )
    checked = intact_batch(memoryview(before + encoded + after), len(before))
    assert checked is not None
    assert checked == readable(before + encoded + after, len(before))
    assert checked.last_offset == records[-1].offset


@given(records=record_lists(), draw=st.data())
def test_a_damaged_batch_is_refused_by_both(records: list[Record], draw: st.DataObject) -> None:
    """The functions `intact_batch` and `readable` refuse the same damaged batches.

    The test changes one byte of a batch, or removes the end of the batch. The CRC of a batch does not cover its offset
    and its leader epoch.
    """
    encoded = bytearray(encode_batch(records, keep_offsets=True))
    position = draw.draw(st.integers(0, RECORD_BATCH_OVERHEAD) | st.integers(0, len(encoded) - 1))
    if draw.draw(st.booleans()):
        encoded[position] ^= draw.draw(st.integers(1, 255))
    else:
        del encoded[position:]
    assert intact_batch(memoryview(encoded), 0) == readable(bytes(encoded), 0)


@given(count=st.integers(-1, 7))
def test_the_number_of_records_must_match_the_offsets(count: int) -> None:
    """A batch with five offsets has at most five records. The CRC of each tested batch is correct."""
    batch = RecordBatch.parse(encode_batch([Record(0, 0, None, b"value")] * 5))
    body = bytes(batch.view[21:57]) + count.to_bytes(4, "big", signed=True) + bytes(batch.view[61:])
    encoded = bytes(batch.view[:17]) + crc32c(body).to_bytes(4, "big") + body
    assert (intact_batch(memoryview(encoded), 0) is not None) == (0 <= count <= 5)
    assert intact_batch(memoryview(encoded), 0) == readable(encoded, 0)
