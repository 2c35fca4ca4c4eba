"""Tests of the fast decoder for consumers: it returns the same records and errors as the simple, slower decoder."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hmb.protocol.errors import KafkaError
from hmb.records import Codec, Record, RecordBatch, TimestampType, encode_batch, encode_message_set, parse_batch
from hmb.records.batch import CRC_START, RECORD_BATCH_OVERHEAD, assemble
from hmb.records.consumer_record import ConsumerRecord
from hmb.records.fast.consumer_records import consumer_records
from hmb.records.reading import Batch
from hmb.records.varint import VARINTS
from tests.records.record_strategies import record_lists

NOW = 1_700_000_000_000
sizes = st.sampled_from([0, 1, 62, 63, 64, 65, 8_100, 8_170, 8_190, 8_191, 8_192, 8_200, 20_000])
payloads = st.none() | st.binary(max_size=70) | sizes.map(bytes)
records = st.lists(
    st.builds(
        Record,
        timestamp=st.integers(NOW - 10_000, NOW + 10_000) | st.sampled_from([-1, 0, 2**40, 2**61, 2**62]),
        key=payloads,
        value=payloads,
        headers=st.sampled_from([(), (("h", b"v"),), (("h", None), ("", b"\xff"))]),
    ),
    min_size=1,
    max_size=20,
)


def readable_decoder(batch: Batch) -> list[ConsumerRecord] | str:
    """Decode a batch with its method `records`, and return the records or the text of the error.

    This method is easier to read than the fast decoder, but slower.
    """
    try:
        return [
            ConsumerRecord("t", 3, it.offset, it.timestamp, it.timestamp_type, it.key, it.value, it.headers)
            for it in batch.records()
        ]
    except KafkaError as error:
        return str(error)


def fast_decoder(batch: Batch) -> list[ConsumerRecord] | str:
    try:
        return consumer_records(batch, "t", 3)
    except KafkaError as error:
        return str(error)


@given(records, st.none() | st.sampled_from([0, 1, NOW]))
def test_records_are_those_that_were_encoded(given_: list[Record], log_append_time: int | None) -> None:
    batch = RecordBatch.parse(encode_batch(given_, base_offset=100, log_append_time=log_append_time))
    assert fast_decoder(batch) == readable_decoder(batch)


@given(record_lists())
def test_records_with_gaps_as_compaction_leaves_them(given_: list[Record]) -> None:
    batch = RecordBatch.parse(encode_batch(given_, keep_offsets=True))
    assert [record.offset for record in fast_decoder(batch)] == [record.offset for record in given_]  # type: ignore[union-attr]
    assert fast_decoder(batch) == readable_decoder(batch)


@pytest.mark.parametrize("count", [63, 64, 65, 8191, 8192, 8193, 10_000])
def test_batches_of_many_records(count: int) -> None:
    batch = RecordBatch.parse(encode_batch([Record(timestamp=NOW + number, value=b"") for number in range(count)]))
    assert fast_decoder(batch) == readable_decoder(batch)


@given(records, st.data())
@example([Record(timestamp=NOW, value=b"x")], None)
def test_both_decoders_find_the_same_damage(given_: list[Record], data: st.DataObject | None) -> None:
    """Both decoders find the same damage.

    The test changes up to three bytes after the CRC field of a batch. These bytes belong to the header or to the
    records.
    """
    encoded = bytearray(encode_batch(given_))
    if data is not None:
        for _ in range(data.draw(st.integers(1, 3))):
            place = data.draw(st.integers(21, min(len(encoded) - 1, 200)) | st.integers(21, len(encoded) - 1))
            encoded[place] = data.draw(st.integers(0, 255))
    batch = RecordBatch.parse(bytes(encoded))
    assert fast_decoder(batch) == readable_decoder(batch)


def crafted(content: bytes, count: int, last_offset_delta: int) -> RecordBatch:
    """Return a batch whose header and CRC are right, and whose records are the bytes `content`."""
    header = bytearray(encode_batch([Record(timestamp=NOW)] * count)[CRC_START:RECORD_BATCH_OVERHEAD])
    header[2:6] = last_offset_delta.to_bytes(4)
    return RecordBatch.parse(assemble(0, -1, bytes(header), content))


def test_a_length_of_three_bytes_is_not_read_as_two_bytes() -> None:
    """Both decoders read all three bytes of a record's length, and notice that the record is damaged.

    A decoder that reads only two bytes of the length begins each later field one byte too early. It then finds two
    intact records in the batch.
    """
    # The last byte of the first record, 12, encodes the number of headers, 6. But the record ends before these headers.
    first = bytes(3) + VARINTS[8190] + bytes(8190) + bytes([0, 12])
    second = bytes([10, 0, 0, 1, 1, 0])
    batch = crafted(VARINTS[len(first)] + first + second, count=2, last_offset_delta=1)
    assert "cannot be read" in str(readable_decoder(batch))
    assert fast_decoder(batch) == readable_decoder(batch)


def test_an_offset_delta_of_four_bytes_is_not_read_as_three_bytes() -> None:
    """Both decoders read all four bytes of an offset delta, and notice that the record is damaged.

    The record ends before its number of headers. A wrong decoder could read only three bytes of the offset delta, and
    use the fourth byte as the length of the key. The wrong decoder would then find an intact record.
    """
    record = bytes(2) + VARINTS[1 << 20] + bytes([1, 0])  # no key, and an empty value
    batch = crafted(VARINTS[len(record)] + record, count=1, last_offset_delta=1 << 20)
    assert "cannot be read" in str(readable_decoder(batch))
    assert fast_decoder(batch) == readable_decoder(batch)


@given(records, st.sampled_from([0, 1]), st.sampled_from([Codec.NONE, Codec.GZIP]))
def test_old_formats(given_: list[Record], magic: int, codec: Codec) -> None:
    batch = parse_batch(encode_message_set(given_, magic, codec))
    assert fast_decoder(batch) == readable_decoder(batch)


def test_usual_records_do_not_use_the_readable_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordBatch, "records", None)
    usual = [
        Record(timestamp=NOW + number * 50, key=bytes(number), value=bytes(number * 10), headers=(("h", b"v"),))
        for number in range(200)
    ]
    found = consumer_records(RecordBatch.parse(encode_batch(usual, codec=Codec.LZ4)), "t", 3)
    assert [(it.timestamp, it.key, it.value, it.headers) for it in found] == [
        (it.timestamp, it.key, it.value, it.headers) for it in usual
    ]
    assert {it.timestamp_type for it in found} == {TimestampType.CREATE_TIME}
