"""Tests of the primitive types. The expected bytes were computed by hand."""

import tracemalloc
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.protocol import primitives as p
from hmb.protocol.primitives import FieldCodec

KNOWN = [
    (p.INT8, -1, "ff"),
    (p.INT16, 258, "0102"),
    (p.INT16, -2, "fffe"),
    (p.INT32, 2**31 - 1, "7fffffff"),
    (p.INT64, -(2**63), "8000000000000000"),
    (p.UINT16, 65535, "ffff"),
    (p.UINT32, 2**32 - 1, "ffffffff"),
    (p.BOOL, True, "01"),
    (p.BOOL, False, "00"),
    (p.FLOAT64, 1.5, "3ff8000000000000"),
    (p.FIXED["uuid"], uuid.UUID(int=1), "00" * 15 + "01"),
    (p.UVARINT, 0, "00"),
    (p.UVARINT, 127, "7f"),
    (p.UVARINT, 128, "8001"),
    (p.UVARINT, 300, "ac02"),
    (p.UVARINT, 2**32 - 1, "ffffffff0f"),
    (p.VARINT, 0, "00"),
    (p.VARINT, -1, "01"),
    (p.VARINT, 1, "02"),
    (p.VARINT, 2**31 - 1, "feffffff0f"),
    (p.VARINT, -(2**31), "ffffffff0f"),
    (p.VARLONG, 2**63 - 1, "feffffffffffffffff01"),
    (p.VARLONG, -(2**63), "ffffffffffffffffff01"),
    (p.string(p.INT16, False), "ü", "0002c3bc"),
    (p.string(p.INT16, True), None, "ffff"),
    (p.string(p.COMPACT_LENGTH, False), "", "01"),
    (p.string(p.COMPACT_LENGTH, True), "ab", "036162"),
    (p.string(p.COMPACT_LENGTH, True), None, "00"),
    (p.bytestring(p.INT32, False), b"\x01", "0000000101"),
    (p.bytestring(p.COMPACT_LENGTH, True), None, "00"),
    (p.array(p.INT32, p.INT16, False), [1, 2], "0000000200010002"),
    (p.array(p.INT32, p.INT16, True), None, "ffffffff"),
    (p.array(p.COMPACT_LENGTH, p.INT8, True), [], "01"),
    (p.optional(p.INT16), 5, "010005"),
    (p.optional(p.INT16), None, "ff"),
    (p.optional(p.INT16, tagged=True), 5, "010005"),
    (p.optional(p.INT16, tagged=True), None, "00"),
]


@pytest.mark.parametrize(("codec", "value", "wire"), KNOWN)
def test_known_bytes(codec: FieldCodec, value: Any, wire: str) -> None:
    out = p.Output()
    codec.encode(out, value)
    assert out.hex() == wire
    assert codec.decode(memoryview(b"\xaa" + bytes.fromhex(wire) + b"\xaa"), 1) == (value, len(wire) // 2 + 1)


@pytest.mark.parametrize(("codec", "value", "wire"), KNOWN)
def test_cut_anywhere(codec: FieldCodec, value: Any, wire: str) -> None:
    data = bytes.fromhex(wire)
    for end in range(len(data)):
        with pytest.raises(p.MALFORMED):
            codec.decode(memoryview(data[:end]), 0)


@pytest.mark.parametrize(
    ("codec", "wire", "complaint"),
    [
        (p.string(p.INT16, True), "7fff61", "field's length is 32767, but only 1 bytes are left"),
        (p.string(p.INT16, True), "fffe", "field's length is -2, which is negative"),
        (p.string(p.INT16, False), "ffff", "null is not allowed"),
        (p.string(p.INT16, False), "0001ff", "utf-8"),
        (p.string(p.COMPACT_LENGTH, False), "00", "null is not allowed"),
        (p.bytestring(p.INT32, False), "7fffffff", "field's length is 2147483647, but only 0 bytes are left"),
        (p.records(p.INT32, False), "7fffffff00", "field's length is 2147483647, but only 1 bytes are left"),
        (p.array(p.INT32, p.INT64, False), "7fffffff", "field's length is 2147483647, but only 0 bytes are left"),
        (p.array(p.COMPACT_LENGTH, p.INT64, False), "ffffffff0f", "length is 4294967294, but only 0 bytes are left"),
        (p.UVARINT, "ffffffff10", "more than 32 bits"),
        (p.UVARINT, "808080808000", "more than 32 bits"),
        (p.VARLONG, "ffffffffffffffffff02", "more than 64 bits"),
    ],
)
def test_malformed(codec: FieldCodec, wire: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        codec.decode(memoryview(bytes.fromhex(wire)), 0)


@pytest.mark.parametrize(
    ("codec", "value"),
    [
        (p.INT8, 128),
        (p.INT32, "1"),
        (p.UVARINT, -1),
        (p.VARINT, 2**31),
        (p.VARLONG, -(2**63) - 1),
        (p.string(p.INT16, False), None),
        (p.string(p.INT16, False), "x" * 32768),
        (p.bytestring(p.INT32, False), None),
        (p.array(p.INT32, p.INT8, False), None),
        (p.records(p.INT32, False), None),
    ],
)
def test_values_that_do_not_fit(codec: FieldCodec, value: Any) -> None:
    with pytest.raises((ValueError, *p.UNWRITABLE)):
        codec.encode(p.Output(), value)


def test_a_claimed_length_allocates_nothing() -> None:
    claims = memoryview(b"\x7f\xff\xff\xff" + bytes(1000))
    tracemalloc.start()
    for codec in p.array(p.INT32, p.INT8, False), p.bytestring(p.INT32, False), p.records(p.INT32, False):
        with pytest.raises(ValueError, match="1000 bytes are left"):
            codec.decode(claims, 0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


@given(st.integers(0, 2**32 - 1))
def test_uvarint_round_trip(value: int) -> None:
    out = p.Output()
    p.encode_uvarint(out, value)
    assert p.UVARINT.decode(memoryview(out), 0) == (value, max(1, -(-value.bit_length() // 7)))


@pytest.mark.parametrize(("codec", "bits"), [(p.VARINT, 32), (p.VARLONG, 64)])
@given(st.data())
def test_zigzag_round_trip(codec: FieldCodec, bits: int, data: st.DataObject) -> None:
    value = data.draw(st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
    out = p.Output()
    codec.encode(out, value)
    assert codec.decode(memoryview(out), 0) == (value, len(out))


class InFile:
    """A replacement for a part of a log file. The codec must return this object unchanged, and must not read it."""

    size = 1000


def test_records_are_left_where_they_are() -> None:
    codec, batch, piece = p.records(p.INT32, True), memoryview(b"batch"), InFile()
    out = p.Output()
    for value in (batch, None, piece, b""):
        codec.encode(out, value)
    parts = out.parts()
    assert parts == [b"\0\0\0\5", batch, b"\xff\xff\xff\xff\0\0\3\xe8", piece, b"\0\0\0\0"]
    assert parts[1] is batch
    assert [p.part_size(part) for part in parts] == [4, 5, 8, 1000, 4]


def test_records_are_read_as_a_view() -> None:
    buffer = memoryview(b"\0\0\0\3abc")
    value, end = p.records(p.INT32, False).decode(buffer, 0)
    assert (value, end) == (b"abc", 7)
    assert value.obj is buffer.obj


@pytest.mark.parametrize("length", [p.INT16, p.COMPACT_LENGTH], ids=["plain", "compact"])
@pytest.mark.parametrize("text", ["s" * 32_767, "\u00e9" * 16_383])
def test_the_longest_string(length: FieldCodec, text: str) -> None:
    codec, out = p.string(length, True), p.Output()
    codec.encode(out, text)
    assert codec.decode(memoryview(out), 0) == (text, len(out))
    with pytest.raises(p.UNWRITABLE):
        codec.encode(out, text + "\u00e9")


def test_a_compact_string_of_more_than_32767_bytes_is_malformed() -> None:
    """A compact string of more than 32,767 bytes is malformed.

    Before a bug was fixed, the codec accepted a string of 32,768 bytes. But the broker's coordinators could not store
    this string, because a string in their records has at most 32,767 bytes.
    """
    out = p.Output()
    p.COMPACT_LENGTH.encode(out, 32_768)
    out += b"s" * 32_768
    with pytest.raises(ValueError, match="string of 32768 bytes, at most 32767"):
        p.string(p.COMPACT_LENGTH, True).decode(memoryview(out), 0)
