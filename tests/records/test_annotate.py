"""Tests of the annotation of a batch: every byte is in exactly one field, and the values are those of the batch."""

from itertools import groupby

import pytest

from hmb.protocol.annotate import Line
from hmb.protocol.errors import KafkaError
from hmb.records import (
    Codec,
    ControlType,
    EndTransactionMarker,
    Record,
    assign_offsets,
    encode_batch,
    encode_marker,
    encode_message_set,
    iter_batches,
    parse_batch,
)
from hmb.records.annotate import annotate_batch, annotate_header, timestamp_note

RECORDS = [
    Record(timestamp=1000, value=b"no key"),
    Record(timestamp=1001, key=b"tombstone"),
    Record(timestamp=1002, key=b"\xff", value=b"v" * 300, headers=(("a", b"1"), ("", None), ("b", b""))),
    Record(timestamp=-1, key=b"", value=b""),
]
MARKER = encode_marker(EndTransactionMarker(ControlType.COMMIT, 3), 5, 7, 1)


def formats() -> dict[str, bytes]:
    files = {f"batch-{codec.name}": encode_batch(RECORDS, codec=codec) for codec in Codec} | {"marker": MARKER}
    for magic in (0, 1):
        for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
            data = encode_message_set(RECORDS, magic, codec)
            files[f"v{magic}-{codec.name}"] = bytes(assign_offsets(data, 40).data)
    return files


def annotated(data: bytes, position: int = 0) -> list[tuple[Line, bool]]:
    lines = []
    for batch in iter_batches(data):
        lines += list(annotate_batch(batch, position))
        position += batch.size
    return lines


def values(data: bytes) -> dict[str, object]:
    return {line.path: getattr(line.value, "number", line.value) for line, _ in annotated(data)}


@pytest.mark.parametrize("data", formats().values(), ids=formats())
def test_every_byte_is_in_one_field(data: bytes) -> None:
    lines = annotated(data, position=1000)
    assert b"".join(line.data for line, is_inside in lines if not is_inside) == data
    end = 1000
    for line, is_inside in lines:
        if not is_inside:
            assert line.offset == end
            end += len(line.data)
    for is_inside, group in groupby(lines, key=lambda pair: pair[1]):
        position = 0
        for line, _ in group if is_inside else ():
            assert line.offset == position
            position += len(line.data)


@pytest.mark.parametrize("codec", Codec)
def test_a_record_batch(codec: Codec) -> None:
    found = values(encode_batch(RECORDS, base_offset=40, codec=codec, producer_id=7, producer_epoch=1, base_sequence=9))
    assert (found["base_offset"], found["magic"], found["attributes"]) == (40, 2, codec.value)
    assert (found["producer_id"], found["base_sequence"], found["records_count"]) == (7, 9, 4)
    assert (found["records[1].offset_delta"], found["records[1].timestamp_delta"]) == (1, 1)
    assert (found["records[0].key.size"], found["records[0].value"]) == (-1, b"no key")
    assert (found["records[2].headers.count"], found["records[2].headers[0].key"]) == (3, b"a")
    assert "records[3].value" not in found


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_and_wrappers(magic: int) -> None:
    plain = values(encode_message_set(RECORDS[2:3], magic))
    assert (plain["offset"], plain["magic"], plain["key"], plain["value.size"]) == (0, magic, b"\xff", 300)
    assert ("timestamp" in plain) == (magic == 1)
    wrapper = values(encode_message_set(RECORDS, magic, Codec.GZIP))
    assert wrapper["messages[1].key"] == b"tombstone"
    assert [wrapper[f"messages[{n}].offset"] for n in range(4)] == [0, 1, 2, 3]


def test_what_numbers_mean() -> None:
    meanings = {line.path: str(line.value) for line, _ in annotated(MARKER)}
    assert meanings["attributes"].endswith("none, CreateTime, transactional, control")
    assert meanings["records[0].key.type"] == "1  COMMIT"
    assert meanings["records[0].value.coordinator_epoch"] == "3"
    assert str(timestamp_note(1262332800000)) == "1262332800000  2010-01-01T08:00:00.000Z"
    assert str(timestamp_note(2**63 - 1)).endswith("not a date")


def test_damage_comes_after_the_lines_before_it() -> None:
    whole = encode_batch(RECORDS)
    for position in range(61, len(whole)):
        for byte in (0, 0x7F, 0xFF):
            damaged = bytearray(whole)
            damaged[position] = byte
            (batch,) = iter_batches(damaged)
            lines = annotate_batch(batch, 0)
            end = 0
            try:
                for line, _ in lines:
                    assert line.offset == end
                    end += len(line.data)
            except KafkaError:
                assert end >= 61


def test_the_header_needs_no_more_than_its_bytes() -> None:
    for data in (encode_batch(RECORDS)[:61], encode_message_set(RECORDS, 1)[:40]):
        lines = list(annotate_header(parse_batch(data), 0))
        assert b"".join(line.data for line in lines) == data[: lines[-1].offset + len(lines[-1].data)]
