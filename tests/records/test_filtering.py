"""Tests of the filter that removes records from a batch. Even if the CRC is correct, a record can be malformed."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import Codec, Record, RecordBatch, encode_batch, encode_message_set, parse_batch
from hmb.records.changed_batch import with_records
from hmb.records.fast.raw_records import raw_records
from hmb.records.filtering import MAX_BATCH_RECORDS, filter_batch, keep_offsets, keys_of, with_delete_horizon
from hmb.records.record import encode_records
from hmb.records.varint import VARINTS


def raw_record(offset_delta: int, *, length: int | None = None, key_size: int = 1, timestamp_delta: int = 0) -> bytes:
    """Return an encoded record with the key "k" and the value "v". A test can pass wrong lengths and deltas."""
    body = (
        b"\0" + VARINTS[timestamp_delta] + VARINTS[offset_delta] + VARINTS[key_size] + b"k" + VARINTS[1] + b"v" + b"\0"
    )
    return VARINTS[len(body) if length is None else length] + body


def batch_of(content: bytes, count: int, last_offset_delta: int) -> RecordBatch:
    """Return a batch with a valid header and a correct CRC.

    `content` takes the place of its records, and may be any bytes.
    """
    frame = RecordBatch.parse(encode_batch([Record(timestamp=100)] * (last_offset_delta + 1)))
    return RecordBatch.parse(with_records(frame, content, count, 100))


def test_valid_records_are_listed_and_kept_at_their_offsets() -> None:
    batch = batch_of(raw_record(0) + raw_record(3), 2, 5)  # offsets with gaps, as after compaction
    assert keys_of(batch) == ([b"k", b"k"], [0, 3])
    kept = filter_batch(batch, lambda offset, key, is_tombstone: offset == 3)
    assert kept is not None
    assert [record.offset for record in RecordBatch.parse(kept).records()] == [3]


@pytest.mark.parametrize(
    "records",
    [
        [raw_record(0, length=-1)] * 2,
        [raw_record(0, length=0), raw_record(1)],
        [raw_record(0, length=3), raw_record(1)],  # The first record ends inside its own key.
        [raw_record(0), raw_record(1, key_size=5)],  # The length of the second key is too large for the record.
        [raw_record(0, key_size=2**31), raw_record(1)],
        [raw_record(0), raw_record(1, length=2**40)],
        [raw_record(0), raw_record(0)],
        [raw_record(1), raw_record(0)],
        [raw_record(0), raw_record(2)],  # The second offset is above the batch's last one.
        [raw_record(-1), raw_record(0)],
        [raw_record(0, timestamp_delta=2**63 - 1), raw_record(1)],
        [raw_record(0, timestamp_delta=-(2**62) - 101), raw_record(1)],
        [raw_record(0)],  # fewer records than the header declares
        [raw_record(0), raw_record(1), raw_record(2)],  # more records than the header declares
    ],
)
def test_records_with_false_lengths_or_deltas_are_refused(records: Sequence[bytes]) -> None:
    """The filter refuses records with wrong lengths or deltas.

    Before a bug was fixed, a wrong offset delta made compaction remove valid records.
    """
    batch = batch_of(b"".join(records), 2, 1)
    for use in (lambda: keys_of(batch), lambda: filter_batch(batch, lambda *_: False)):
        with pytest.raises(KafkaError) as refused:
            use()
        assert refused.value.code is ErrorCode.INVALID_RECORD


def test_a_record_of_length_minus_one_ends_the_loop() -> None:
    batch = batch_of(raw_record(0, length=-1), 2**31 - 1, 0)
    with pytest.raises(KafkaError, match="claims -1 bytes"):
        list(raw_records(batch, batch.uncompressed()))


def test_compressed_batches_keep_their_codec() -> None:
    batch = RecordBatch.parse(
        encode_batch([Record(key=b"a", value=b"1"), Record(key=b"b", value=b"2")], codec=Codec.LZ4)
    )
    kept = filter_batch(batch, lambda offset, key, is_tombstone: key == b"b")
    assert kept is not None
    rest = RecordBatch.parse(kept)
    assert (rest.codec, [record.key for record in rest.records()]) == (Codec.LZ4, [b"b"])


record = st.builds(
    Record,
    timestamp=st.integers(1_000, 1_500),
    key=st.binary(max_size=80),
    value=st.none() | st.binary(max_size=150),
    headers=st.sampled_from([(), (("h", None),)]),
)


@given(
    records=st.lists(record, min_size=1, max_size=80),
    codec=st.sampled_from([Codec.NONE, Codec.LZ4]),
    log_append_time=st.none() | st.just(2_000),
    choice=st.data(),
)
def test_keep_offsets_equals_filter_batch(
    records: list[Record], codec: Codec, log_append_time: int | None, choice: st.DataObject
) -> None:
    batch = RecordBatch.parse(encode_batch(records, base_offset=100, codec=codec, log_append_time=log_append_time))
    offsets = sorted(choice.draw(st.sets(st.integers(100, batch.last_offset))))
    expected = filter_batch(batch, lambda offset, *_: offset in offsets, delete_horizon=9_000)
    assert keep_offsets(batch, offsets, delete_horizon=9_000) == expected


def tombstone_with_header(key: bytes) -> bytes:
    body = b"\0" + VARINTS[3] + VARINTS[0] + VARINTS[1] + b"k" + VARINTS[-1] + VARINTS[1]
    body += VARINTS[len(key)] + key + VARINTS[1] + b"v"
    return VARINTS[len(body)] + body


def test_a_tombstone_with_a_header_key_that_is_not_utf_8_gets_a_delete_horizon() -> None:
    """A tombstone gets a delete horizon although its header key is not valid UTF-8.

    Before a bug was fixed, the filter decoded the headers first, and failed.
    """
    record = tombstone_with_header(b"\xff\xfe")
    batch = batch_of(record, 1, 0)
    kept = filter_batch(batch, lambda *_: True, delete_horizon=9_000)
    assert kept is not None
    left = RecordBatch.parse(kept)
    left.check()
    assert (left.delete_horizon, left.max_timestamp) == (9_000, 103)
    # Only the timestamp delta changes, from 3 to -8897. The new delta takes two more bytes.
    assert left.uncompressed() == VARINTS[len(record) - 1 + 2] + b"\0" + VARINTS[103 - 9_000] + record[3:]


@given(
    records=st.lists(record, min_size=1, max_size=20),
    codec=st.sampled_from(Codec),
    log_append_time=st.none() | st.just(2_000),
)
def test_a_delete_horizon_keeps_every_record(records: list[Record], codec: Codec, log_append_time: int | None) -> None:
    batch = RecordBatch.parse(encode_batch(records, base_offset=100, codec=codec, log_append_time=log_append_time))
    moved = RecordBatch.parse(with_delete_horizon(batch, 9_000))
    moved.check()
    assert (moved.delete_horizon, moved.max_timestamp) == (9_000, batch.max_timestamp)
    assert list(moved.records()) == list(batch.records())


def test_a_batch_with_too_many_records_is_refused_and_not_listed() -> None:
    """The filter refuses a batch with too many records before it lists their keys.

    Before a bug was fixed, the keys of 1.25 million records (1 MB of zstd) needed 1 GB of memory.
    """
    records = [Record(key=b"k")] * (MAX_BATCH_RECORDS + 1)
    frame = RecordBatch.parse(encode_batch(records[:1], codec=Codec.ZSTD))
    batches = [
        RecordBatch.parse(with_records(frame, encode_records(records, None, -1), len(records), -1)),
        parse_batch(encode_message_set(records, 1, Codec.GZIP)),
    ]
    for batch in batches:
        for use in (keys_of, lambda batch: filter_batch(batch, lambda *_: True)):
            with pytest.raises(KafkaError) as refused:
                use(batch)
            assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
