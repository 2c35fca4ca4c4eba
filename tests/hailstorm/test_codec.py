"""Tests of the codec. A decoded value has the content and type of the original value. Invalid bytes raise an error."""

from __future__ import annotations

import contextlib
import math
import time
import tracemalloc
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.hailstorm import codec
from hmb.hailstorm.errors import CodecError

leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(),
    st.text(alphabet=st.characters(codec=None, categories=["Cs"])),
)  # fmt: skip
hashables = st.recursive(
    leaves, lambda inner: st.one_of(st.lists(inner).map(tuple), st.frozensets(inner)), max_leaves=8
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(hashables, inner), st.sets(hashables)
    ),
    max_leaves=20,
)
homogeneous = st.one_of(
    *(st.lists(leaf, min_size=2) for leaf in (st.integers(), st.text(), st.binary(), st.floats(allow_nan=False))),
    st.lists(st.tuples(st.text(), st.integers(-300, 300))),
    st.lists(st.tuples(st.text(), st.tuples(st.integers(), st.booleans()))),
)


def same(one: object, other: object) -> bool:
    """Return whether two values and their types are equal. In Python, 1 == True == 1.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        assert isinstance(other, dict)
        return len(one) == len(other) and all(map(same, one.items(), other.items()))
    if isinstance(one, (list, tuple)):
        assert isinstance(other, (list, tuple))
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@given(st.one_of(values, homogeneous))
def test_a_value_comes_back_with_its_types(value: object) -> None:
    assert same(codec.decode(codec.encode(value)), value)


def test_not_a_number_comes_back() -> None:
    assert math.isnan(codec.decode(codec.encode(math.nan)))


def test_the_example_of_the_docstring() -> None:
    expected = b"m" + b"\x02s\x02b\x03\x03\x06sunfog" + b"\x02b\x02\x01"
    assert codec.encode({"sun": 2, "fog": 1}) == expected
    assert len(expected) == 18


@given(st.binary())
def test_random_bytes_raise_only_a_codec_error(data: bytes) -> None:
    with contextlib.suppress(CodecError):
        codec.decode(data)


@given(st.one_of(values, homogeneous), st.data())
def test_changed_bytes_raise_only_a_codec_error(value: object, data: st.DataObject) -> None:
    encoded = bytearray(codec.encode(value))
    position = data.draw(st.integers(0, len(encoded) - 1))
    encoded[position] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CodecError):
        codec.decode(encoded)


@given(values, st.data())
def test_cut_bytes_are_refused(value: object, data: st.DataObject) -> None:
    encoded = codec.encode(value)
    with pytest.raises(CodecError):
        codec.decode(encoded[: data.draw(st.integers(0, len(encoded) - 1))])


def test_a_large_count_allocates_nothing() -> None:
    for claim in (b"l\xff\xff\xff\xff\x0fq", b"s\xff\xff\xff\xff\x0f", b"l\x01t\xff\xff\xff\xff\x0f"):
        tracemalloc.start()
        with pytest.raises(CodecError):
            codec.decode(claim)
        assert tracemalloc.get_traced_memory()[1] < 100_000
        tracemalloc.stop()


@pytest.mark.parametrize("innermost", [1, 1.5, 1 << 70, "a", b"x", None])
@pytest.mark.parametrize("container", ["list", "tuple", "dict"])
def test_values_are_encoded_up_to_the_depth_at_which_they_can_be_decoded(container: str, innermost: object) -> None:
    value = innermost
    for _ in range(codec.MAX_DEPTH):
        value = {1: value} if container == "dict" else (value, 2) if container == "tuple" else [value]
    assert codec.decode(codec.encode(value)) == value
    with pytest.raises(CodecError, match="deep"):
        codec.encode([value])


@pytest.mark.parametrize(
    "nested",
    [b"l\x01v" * (codec.MAX_DEPTH + 1) + b"N", b"l" + b"\x01t\x01" * codec.MAX_DEPTH + b"\x00"],
    ids=["lists", "columns of tuples"],
)
def test_deep_bytes_are_not_decoded(nested: bytes) -> None:
    with pytest.raises(CodecError, match="deep"):
        codec.decode(nested)


@pytest.mark.parametrize(
    ("lengths", "problem"),
    [
        (b"\x02b\x01\x01", "a column of 1 values has 2 lengths of the kind 'b'"),
        (b"\x01s" * 2000, "a column of 1 values has 1 lengths of the kind 's'"),
        (b"\x01b\xff\x01x", "a column contains the negative length -1"),
        (b"\x01b\x02\x01x", "the lengths in a column add up to 2, but the length of the content is 1"),
    ],
)
def test_wrong_lengths_of_strings_are_refused(lengths: bytes, problem: str) -> None:
    with pytest.raises(CodecError, match=problem):
        codec.decode(b"l\x01s" + lengths)


class City(NamedTuple):
    name: str
    country: str


class Unknown:
    def __repr__(self) -> str:
        return "Unknown()"


def test_a_registered_type_comes_back() -> None:
    codec.register(City, "city", tuple, lambda value: City(*value))
    stored = codec.decode(codec.encode({City("Tartu", "EE"): [City("Riga", "LV")]}))
    assert same(stored, {City("Tartu", "EE"): [City("Riga", "LV")]})
    # Registering a type again is allowed, for a module that is imported twice.
    codec.register(City, "city", tuple, lambda value: City(*value))


def test_two_types_cannot_share_a_name() -> None:
    codec.register(City, "city", tuple, lambda value: City(*value))
    with pytest.raises(ValueError, match="'city'"):
        codec.register(Unknown, "city", lambda value: 0, lambda value: Unknown())


def test_an_unknown_type_is_named_with_what_to_do() -> None:
    with pytest.raises(CodecError, match=r"cannot store a Unknown \(Unknown\(\)\).*hailstorm.register"):
        codec.encode([Unknown()])
    with pytest.raises(CodecError, match=r"does not know the type 'nowhere': call hailstorm.register"):
        codec.decode(b"x\x07nowhereN")


def test_a_state_of_many_words_takes_little_time() -> None:
    """The encoding of a snapshot of 100,000 words is fast. The time limit is generous."""
    state = {f"word-{number}": number for number in range(100_000)}
    started = time.process_time()
    assert codec.decode(codec.encode(state)) == state
    assert time.process_time() - started < 2
