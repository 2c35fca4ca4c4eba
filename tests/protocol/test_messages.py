"""Tests of message classes.

A message is the same after encoding and decoding. For malformed bytes, decoding raises no error except ProtocolError.
"""

import ast
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hmb.protocol.messages
from hmb.protocol.errors import ProtocolError
from hmb.protocol.messages import API_KEYS, request_class, response_class
from hmb.protocol.schema import Struct
from tests.protocol.strategies import CLASSES, CLASSES_AND_VERSIONS, IDS, messages

every_message = pytest.mark.parametrize(("cls", "version"), CLASSES_AND_VERSIONS, ids=IDS)


@every_message
@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_round_trip(cls: type[Struct], version: int, data: st.DataObject) -> None:
    message = data.draw(messages(cls, version))
    encoded = message.encode(version)
    assert cls.decode(encoded, version) == message
    with pytest.raises(ProtocolError):
        cls.decode(encoded + b"\0", version)


@st.composite
def mutations(draw: st.DrawFn, data: bytes) -> bytes:
    """Return the bytes with a part replaced, removed or inserted."""
    start = draw(st.integers(0, len(data)))
    end = draw(st.integers(start, min(len(data), start + 8)))
    return data[:start] + draw(st.binary(max_size=8) | st.sampled_from([b"\x7f\xff\xff\xff", b"\xff" * 5])) + data[end:]


def decodes_or_complains(cls: type[Struct], data: bytes, version: int) -> None:
    try:
        message = cls.decode(data, version)
    except ProtocolError:
        return
    assert cls.decode(message.encode(version), version) == message


@pytest.mark.parametrize("cls", CLASSES)
@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_damaged_bytes(cls: type[Struct], data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(cls.versions))
    encoded = data.draw(messages(cls, version)).encode(version)
    for damaged in data.draw(st.lists(mutations(encoded), min_size=3, max_size=3)):
        decodes_or_complains(cls, damaged, version)


@pytest.mark.parametrize("cls", CLASSES)
@given(data=st.binary(max_size=60))
@settings(max_examples=50, deadline=None)
def test_random_bytes(cls: type[Struct], data: bytes) -> None:
    for version in cls.versions:
        decodes_or_complains(cls, data, version)


@every_message
def test_every_cut_is_noticed(cls: type[Struct], version: int) -> None:
    encoded = cls().encode(version)
    for end in range(len(encoded)):
        with pytest.raises(ProtocolError, match=r"version \d+, byte"):
            cls.decode(encoded[:end], version)


def test_request_and_response_belong_together() -> None:
    for key in API_KEYS:
        request, response = request_class(key), response_class(key)
        assert request.api_key == response.api_key == key
        assert request.versions == response.versions
        assert request.flexible == response.flexible


def test_a_field_is_one_line() -> None:
    """A message class reads like the specification: one line for each field."""
    paths = sorted(Path(hmb.protocol.messages.__file__).parent.glob("*.py"))
    fields = [
        (path.name, node)
        for path in paths
        for body in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(body, ast.ClassDef)
        for node in body.body
        if isinstance(node, ast.AnnAssign)
    ]
    assert len(fields) > 500
    assert [(name, node.lineno) for name, node in fields if node.end_lineno != node.lineno] == []
