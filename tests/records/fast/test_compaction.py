"""Tests of the fast decoders `plain_keys` and `plain_parts`.

The fast decoders return the same keys and the same bytes of records as the slower decoder `raw_records`. For records
that it cannot decode, a fast decoder returns None.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.protocol.errors import KafkaError
from hmb.records import Record, RecordBatch, encode_batch
from hmb.records.fast.compaction import plain_keys, plain_parts
from hmb.records.fast.raw_records import raw_records

NOW = 1_700_000_000_000
record = st.builds(
    Record,
    timestamp=st.integers(-(10**10), 10**10).map(lambda delta: NOW + delta) | st.integers(NOW, NOW + 200),
    key=st.binary(max_size=70) | st.none(),
    value=st.binary(max_size=200) | st.none(),
    headers=st.sampled_from([(), (("h", b"v"),)]),
)
plain = st.builds(
    Record,
    timestamp=st.integers(NOW, NOW + 10**9),
    key=st.binary(max_size=63),
    value=st.binary(max_size=200) | st.none(),
)


def batch_of(records: list[Record]) -> RecordBatch:
    return RecordBatch.parse(encode_batch(records))


@given(records=st.lists(plain, min_size=1, max_size=200))
def test_the_keys_of_plain_batches_are_found(records: list[Record]) -> None:
    batch = batch_of(records)
    assert plain_keys(batch.uncompressed(), batch.records_count) == [each.key for each in records]


@pytest.mark.parametrize("count", [8192, 8193, 10_000])
def test_a_batch_of_many_records_is_decoded_or_returns_none(count: int) -> None:
    batch = batch_of([Record(0, NOW, b"%d" % number, b"") for number in range(count)])
    expected = [b"%d" % number for number in range(count)] if count <= 8192 else None
    assert plain_keys(batch.uncompressed(), count) == expected


@pytest.mark.parametrize("size", [0, 50, 60, 8_170, 8_179, 8_180, 20_000, 2_000_000])
def test_records_of_each_length_are_decoded_or_return_none(size: int) -> None:
    batch = batch_of([Record(0, NOW, b"key %d" % number, bytes(size)) for number in range(3)])
    expected = [b"key 0", b"key 1", b"key 2"] if size < 8_180 else None
    data = batch.uncompressed()
    assert plain_keys(data, 3) == expected
    parts = plain_parts(data, [1, 2])
    assert (None if parts is None else parts.records) == (
        None if expected is None else [data[raw.start : raw.end] for raw in list(raw_records(batch, data))[1:]]
    )


@given(
    records=st.lists(record, min_size=1, max_size=100),
    change=st.none() | st.tuples(st.floats(0, 1), st.integers(1, 255)),
)
def test_the_keys_are_those_of_raw_records_or_none(records: list[Record], change: tuple[float, int] | None) -> None:
    """`plain_keys` returns the same keys as `raw_records`, or None.

    The test damages one byte in some cases. If `raw_records` then reports damage, `plain_keys` must return None.
    """
    batch = batch_of(records)
    data = bytearray(batch.uncompressed())
    if change is not None:
        position, flip = change
        data[round(position * (len(data) - 1))] ^= flip
    keys = plain_keys(bytes(data), batch.records_count)
    try:
        raws = list(raw_records(batch, bytes(data)))
    except KafkaError:
        assert keys is None
    else:
        assert keys is None or keys == [raw.key(bytes(data)) for raw in raws]
        assert keys is None or [raw.offset for raw in raws] == list(range(len(raws)))


@given(records=st.lists(record.filter(lambda each: each.key is not None), min_size=1, max_size=100), choice=st.data())
def test_the_parts_are_those_of_raw_records_or_none(records: list[Record], choice: st.DataObject) -> None:
    batch = batch_of(records)
    data = batch.uncompressed()
    numbers = sorted(choice.draw(st.sets(st.integers(0, len(records) - 1), min_size=1)))
    parts = plain_parts(data, numbers)
    raws = [raw for number, raw in enumerate(raw_records(batch, data)) if number in numbers]
    if parts is None:
        assert any(len(raw.key(data) or b"") > 63 for raw in raws)
        return
    assert parts.records == [data[raw.start : raw.end] for raw in raws]
    assert parts.newest == max(raw.timestamp_delta for raw in raws)
    assert parts.has_tombstones == any(raw.is_tombstone for raw in raws)


def test_a_record_whose_value_has_any_negative_length_is_a_tombstone() -> None:
    data = bytearray(batch_of([Record(0, NOW, b"key", None)]).uncompressed())
    assert data[-2:] == b"\x01\x00"  # The byte 01 encodes -1, the length of a null value. The byte 00 means no headers.
    data[-2] = 0x4B  # The byte 4B encodes -38, the new length of the value.
    parts = plain_parts(bytes(data), [0])
    assert parts is not None
    assert parts.has_tombstones
