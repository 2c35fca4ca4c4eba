"""Test cases for the versions just outside of Kafka 4.3's ranges: versions that are too old or too new."""

from __future__ import annotations

from hmb.protocol.api_keys import ApiKey
from hmb.protocol.headers import RequestHeader
from hmb.protocol.messages import API_KEYS, request_class

from ..case import FIRST_VERSIONS, Case, Raw, case, shared_versions


def empty(api_key: int, version: int, like: int) -> Raw:
    """Return an empty request in `version`, encoded in the layout of the version `like`."""
    request = request_class(api_key)
    header = RequestHeader(api_key=api_key, api_version=version, correlation_id=1, client_id="raw")
    body = request(acks=1) if api_key == ApiKey.PRODUCE else request()  # A Produce with acks=0 would get no response.
    frame = header.encode(request.header_version(like)) + body.encode(like)
    return Raw(frame, api_key, like)


def dropped(api_key: int, version: int) -> Case:
    return case(
        f"{version}, which Kafka has dropped",
        empty(api_key, version, version),
        api_key=ApiKey(api_key),
        versions=str(version + 1),
    )


def to_come(api_key: int) -> Case:
    newest = shared_versions(api_key)[-1]
    return case(
        f"{newest + 1}, which is to come",
        empty(api_key, newest + 1, newest),
        api_key=ApiKey(api_key),
        versions=str(newest),
    )


CASES: list[Case] = [
    *(dropped(key, version - 1) for key, version in FIRST_VERSIONS.items()),
    *(to_come(key) for key in API_KEYS if key != ApiKey.API_VERSIONS),
]
