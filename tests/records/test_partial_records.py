"""Tests of the function `partial_records`, which reads a batch but does not copy the values of the records.

For each record, `partial_records` yields the offset, the timestamp, and whether the record has a key.
"""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.records import Codec, Record, TimestampType, encode_batch, encode_message_set, parse_batch
from hmb.records.partial_records import partial_records
from tests.records.record_strategies import record_lists

OLD_CODECS = [codec for codec in Codec if codec is not Codec.ZSTD]


@given(records=record_lists(), codec=st.sampled_from(Codec), log_append_time=st.none() | st.just(7))
def test_partial_records_of_a_batch(records: list[Record], codec: Codec, log_append_time: int | None) -> None:
    batch = parse_batch(encode_batch(records, codec=codec, keep_offsets=True, log_append_time=log_append_time))
    assert [*partial_records(batch)] == [(r.offset, r.timestamp, r.key is not None) for r in batch.records()]


@pytest.mark.parametrize("magic", [0, 1])
@given(records=record_lists(), codec=st.sampled_from(OLD_CODECS), is_append_time=st.booleans())
def test_partial_records_of_messages(magic: int, records: list[Record], codec: Codec, is_append_time: bool) -> None:
    if is_append_time:
        for record in records:
            record.timestamp_type = TimestampType.LOG_APPEND_TIME
    message = parse_batch(encode_message_set(records, magic, codec, keep_offsets=True))
    assert [*partial_records(message)] == [(r.offset, r.timestamp, r.key is not None) for r in message.records()]


@pytest.mark.parametrize("magic", [1, 2])
def test_reading_a_timestamp_copies_no_large_value(magic: int) -> None:
    """Reading a timestamp does not copy the record's value.

    Before a bug was fixed, a search by time in a batch of 64 MB needed 126 MB of memory.
    """
    record = Record(timestamp=5, value=bytes(8 << 20))
    encoded = encode_batch([record], codec=Codec.GZIP) if magic == 2 else encode_message_set([record], 1, Codec.GZIP)
    tracemalloc.start()
    try:
        assert [*partial_records(parse_batch(encoded))] == [(0, 5, False)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 11 << 20
