"""Test cases for Metadata: all ways to select topics, and invalid names."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hmb.protocol.api_keys import ApiKey
from hmb.protocol.headers import RequestHeader
from hmb.protocol.messages.metadata import MetadataRequest

from ..case import NOBODYS_ID, Case, Raw, case, id_of

Wanted = MetadataRequest.MetadataRequestTopic
BAD_NAMES = {
    "empty": "",
    "dot": ".",
    "two dots": "..",
    "slash": "a/b",
    "space": "a b",
    "umlaut": "ä",
    "250 characters": "x" * 250,
    "newline": "a\n",
}


def names(*wanted: str, create: bool = True, **options: Any) -> MetadataRequest:
    topics = [Wanted(name=name) for name in wanted]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create, **options)


def ids(*wanted: Any, name: str | None = None, **options: Any) -> MetadataRequest:
    return MetadataRequest(topics=[Wanted(topic_id=id, name=name) for id in wanted], **options)


def has_leaders(answer: Any) -> bool:
    return all(not topic.error_code for topic in answer.topics)


def raw(version: int, body: bytes) -> Raw:
    header = RequestHeader(api_key=ApiKey.METADATA, api_version=version, correlation_id=7, client_id="raw")
    return Raw(header.encode(1) + body, ApiKey.METADATA, version)


CASES: list[Case] = [
    case("null list", raw(0, b"\xff\xff\xff\xff"), versions="0"),
    case("list longer than the frame", raw(1, b"\x7f\xff\xff\xff"), versions="1"),
    case("list of -2", raw(1, b"\xff\xff\xff\xfe"), versions="1"),
    case("all by null", MetadataRequest(topics=None), versions="1+"),
    case("empty list", MetadataRequest(topics=[])),
    case("one", names("three")),
    case("several", names("three", "empty", "filled")),
    case("twice the same", names("three", "three")),
    case("unknown, may not be created", names("nobody", create=False), versions="4+"),
    case("one known, one unknown", names("three", "nobody", create=False), versions="4+"),
    case("unknown twice", names("nobody", "nobody", create=False), versions="4+"),
    case("unknown, may be created", names("<name>")),
    case("operations of topics", names("three", include_topic_authorized_operations=True), versions="8+"),
    case("operations, unknown", names("nobody", create=False, include_topic_authorized_operations=True), versions="8+"),
    case(
        "operations of the cluster",
        MetadataRequest(topics=[], include_cluster_authorized_operations=True),
        versions="8-10",
    ),
    case("by id", ids(id_of("three")), versions="12+"),
    case("by id, unknown", ids(NOBODYS_ID), versions="12+"),
    case("by id, zero", ids(UUID(int=0)), versions="10+"),
    case("by id, several", ids(id_of("three"), NOBODYS_ID, id_of("empty")), versions="12+"),
    case("by id, twice", ids(id_of("three"), id_of("three")), versions="12+"),
    case("by id before v12", ids(id_of("three")), versions="10-11"),
    case("name and id", ids(id_of("three"), name="three"), versions="10+"),
    case("name and id of another", ids(id_of("three"), name="empty"), versions="10+"),
    case(
        "one by name, one by id",
        MetadataRequest(topics=[Wanted(name="three"), Wanted(name=None, topic_id=id_of("empty"))]),
        versions="12+",
    ),
    *(case(f"bad name, {what}", names(name, create=False), versions="4+") for what, name in BAD_NAMES.items()),
    *(case(f"bad name to create, {what}", names(name)) for what, name in BAD_NAMES.items()),
]
