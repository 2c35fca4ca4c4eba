"""Tests of annotations: the annotation of a message contains every byte once, and shows the values of the message."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmb.protocol.annotate import annotate, annotate_request, annotate_response, render
from hmb.protocol.connection import ClientConnection, ServerConnection, UnsupportedVersion
from hmb.protocol.errors import ProtocolError
from hmb.protocol.headers import RequestHeader
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.schema import Struct
from tests.protocol.strategies import CLASSES, messages


@pytest.mark.parametrize("cls", CLASSES)
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_every_byte_is_annotated(cls: type[Struct], data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(cls.versions))
    encoded = memoryview(data.draw(messages(cls, version)).encode(version))
    position = 0
    for line in annotate(cls, version, encoded):
        assert line.offset == position
        position += len(line.data)
    assert position == len(encoded)


@pytest.mark.parametrize("cls", CLASSES)
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_what_cannot_be_decoded_cannot_be_annotated(cls: type[Struct], data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(cls.versions))
    mutated = bytearray(data.draw(messages(cls, version)).encode(version))
    for _ in range(min(len(mutated), 2)):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    wire = memoryview(mutated[: data.draw(st.integers(0, len(mutated)))])
    try:
        _, end = cls.decode_prefix(wire, version)
    except ProtocolError as error:
        with pytest.raises(ProtocolError, match=re.escape(str(error))):
            list(annotate(cls, version, wire))
    else:
        assert sum(len(line.data) for line in annotate(cls, version, wire)) == end


def test_each_line_has_the_type_of_its_field() -> None:
    lines = annotate(MetadataRequest, 9, memoryview(bytes.fromhex("02 05 74 65 73 74 00 01 00 00 00")))
    assert [f"{line.path}: {line.kind}" for line in lines] == [
        "topics.count: compact_length",
        "topics[0].name: compact_string",
        "topics[0].tagged_fields.count: uvarint",
        "allow_auto_topic_creation: bool",
        "include_cluster_authorized_operations: bool",
        "include_topic_authorized_operations: bool",
        "tagged_fields.count: uvarint",
    ]


def test_only_the_header_of_an_unknown_api_is_shown() -> None:
    lines = annotate_request(memoryview(bytes.fromhex("0000000c 7fff 0002 00000007 0002 6d65")))
    assert [next(lines).path for _ in range(5)][1:] == [
        "header.api_key",
        "header.api_version",
        "header.correlation_id",
        "header.client_id",
    ]
    with pytest.raises(UnsupportedVersion, match="the API with key 32767 is not supported"):
        next(lines)


def test_a_request() -> None:
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="test")])
    sent = memoryview(b"".join(bytes(part) for part in ClientConnection("me").request(request, 1)))  # type: ignore[arg-type]
    assert [line[:29].rstrip() + " | " + line[57:] for line in render(annotate_request(sent))] == [
        "000000  00 00 00 16 | size = 22",
        "000004  00 03 | header.api_key = 3  METADATA",
        "000006  00 01 | header.api_version = 1",
        "000008  00 00 00 00 | header.correlation_id = 0",
        "00000c  00 02 6d 65 | header.client_id = 'me'",
        "000010  00 00 00 01 | topics.count = 1",
        "000014  00 04 74 65 73 74 | topics[0].name = 'test'",
    ]


def test_a_response() -> None:
    answer = MetadataResponse(topics=[MetadataResponse.MetadataResponseTopic(error_code=3)])
    parts = ServerConnection().respond(RequestHeader(api_version=9), answer)
    lines = list(annotate_response(MetadataResponse, 9, memoryview(b"".join(bytes(part) for part in parts))))  # type: ignore[arg-type]
    meanings = {line.path: line.value for line in lines}
    assert meanings["header.tagged_fields.count"] == 0
    assert meanings["topics[0].error_code"] == 3
    assert any(line.endswith("topics[0].error_code = 3  UNKNOWN_TOPIC_OR_PARTITION") for line in render(lines))


def test_records_have_separate_lines() -> None:
    partition: Any = ProduceRequest.TopicProduceData.PartitionProduceData(records=memoryview(bytes(range(20))))
    assert list(render(annotate(type(partition), 0, memoryview(partition.encode(0))))) == [
        "000000  00 00 00 00                                      index = 0",
        "000004  00 00 00 14                                      records.size = 20",
        "000008  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f  records = 20 bytes",
        "000018  10 11 12 13",
    ]


def test_unknown_tags_are_shown() -> None:
    request = ApiVersionsRequest()
    request.unknown_tagged_fields = {7: b"abc"}
    assert [line[57:] for line in render(annotate(ApiVersionsRequest, 3, memoryview(request.encode(3))))][2:] == [
        "tagged_fields.count = 1",
        "tag, size = (7, 3)",
        "unknown_tagged_fields[7] = 3 bytes",
    ]


def test_lines_before_malformed_bytes_are_shown() -> None:
    lines = annotate(MetadataRequest, 1, memoryview(bytes.fromhex("00000002 0001 61 00")))
    assert [next(lines).path, next(lines).path] == ["topics.count", "topics[0].name"]
    with pytest.raises(ProtocolError, match=r"name in version 1, byte 7 of 8: the bytes end here"):
        next(lines)
