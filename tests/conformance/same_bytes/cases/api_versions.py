"""Test cases for ApiVersions: unknown versions, invalid client names, and requests of APIs that do not exist."""

from __future__ import annotations

from dataclasses import replace

from hmb.protocol.api_keys import ApiKey
from hmb.protocol.headers import RequestHeader
from hmb.protocol.messages.api_versions import ApiVersionsRequest

from ..case import Case, Raw, case

KEY = ApiKey.API_VERSIONS


def raw(api_key: int, version: int, body: bytes = b"", *, header_version: int = 1, answer_version: int = 0) -> Raw:
    header = RequestHeader(api_key=api_key, api_version=version, correlation_id=7, client_id="raw")
    return Raw(header.encode(header_version) + body, KEY, answer_version)


def named(name: str, version: str) -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


BODY_V3 = named("raw", "1").encode(3)
OFFERS = ("api_keys", "supported_features", "finalized_features", "finalized_features_epoch")
WHAT_IS_OFFERED = case("what is offered", named("test", "1.0"))
CASES_OF_ERRORS = [
    case("plain", named("test", "1.0")),
    case("twice on a connection", named("test", "1.0"), named("test", "1.0")),
    case("no name", named("", ""), versions="3+"),
    case("name with a space", named("a client", "1.0"), versions="3+"),
    case("name with a slash", named("a/client", "1.0"), versions="3+"),
    case("name begins with a dash", named("-client", "1.0"), versions="3+"),
    case("name ends with a dot", named("client.", "1.0"), versions="3+"),
    case("name with digits, dots, dashes", named("a-1.client", "1-0.x"), versions="3+"),
    case("version with a space", named("client", "1 0"), versions="3+"),
    case("no version", named("client", ""), versions="3+"),
    case("long name", named("x" * 1000, "1"), versions="3+"),
    *(
        case(f"unknown version {version}", raw(KEY, version, body, header_version=header), versions="0")
        for version in (5, 99, 32767, -1)
        for body, header in ((BODY_V3, 2),)
    ),
    case("unknown version 99, empty body", raw(KEY, 99), versions="0"),
    case("unknown version, then a known one", raw(KEY, 99, BODY_V3), ApiVersionsRequest(), versions="0", api_key=KEY),
    case("bytes after the body", raw(KEY, 0, b"more"), versions="0"),
    case(
        "bytes after a flexible body", raw(KEY, 3, BODY_V3 + b"more", header_version=2, answer_version=3), versions="3"
    ),
    case("body cut short", raw(KEY, 3, BODY_V3[:-2], header_version=2, answer_version=3), versions="3"),
    case("empty frame", Raw(b"", KEY, 0), versions="0"),
    case("half a header", Raw(b"\0\x12\0", KEY, 0), versions="0"),
    case("no client id", Raw(bytes.fromhex("00120000 00000007 ffff"), KEY, 0), versions="0"),
    case("client id longer than the frame", Raw(bytes.fromhex("00120000 00000007 7fff"), KEY, 0), versions="0"),
    case(
        "unknown tagged field in the body",
        raw(KEY, 3, BODY_V3[:-1] + bytes([1, 99, 2, 1, 2]), header_version=2, answer_version=3),
        versions="3",
    ),
    case(
        "same tag twice",
        raw(KEY, 3, BODY_V3[:-1] + bytes([2, 99, 1, 1, 99, 1, 1]), header_version=2, answer_version=3),
        versions="3",
    ),
    case("api key 999", raw(999, 0), versions="0"),
    case("api key -1", raw(-1, 0), versions="0"),
    case("api key of ZooKeeper's time", raw(ApiKey.LEADER_AND_ISR, 0), versions="0"),
    case("Produce v99", raw(ApiKey.PRODUCE, 99), versions="0"),
    case("Metadata v-1", raw(ApiKey.METADATA, -1), versions="0"),
]
CASES: list[Case] = [WHAT_IS_OFFERED, *(replace(each, ignored=OFFERS) for each in CASES_OF_ERRORS)]
