"""Compares the bytes of every message with those of `kio`, an independent codec generated from Kafka's definitions.

For some fields, kio uses Python types that the protocol does not have. The function `plain` converts such values back.
For example, a duration becomes a number of milliseconds, a missing point in time becomes -1, and a missing topic id
becomes an id of zeros.
"""

import datetime
import io
from dataclasses import fields, is_dataclass
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmb.protocol.errors import ErrorCode
from hmb.protocol.fields import version_range
from hmb.protocol.schema import Request, Response, Struct
from tests.protocol.strategies import CLASSES, CLASSES_AND_VERSIONS, messages

kio = pytest.importorskip("kio", reason="compares with kio, which is not installed (pip install kio)")
from kio.index import UnknownEntity, load_request_schema, load_response_schema  # noqa: E402
from kio.serial import entity_reader, entity_writer  # noqa: E402

MILLISECOND = datetime.timedelta(milliseconds=1)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

PERIODS = ("max_lifetime_ms", "renew_period_ms", "expiry_time_period_ms")
TIMES_OF_TOKENS = [f"{time}_timestamp{end}" for time in ("issue", "expiry", "max") for end in ("", "_ms")]


def kio_class(cls: type[Struct], version: int) -> Any:
    """Return kio's class for a version of a message, or None if kio does not have this version.

    kio does not have the old versions that Kafka 4 no longer supports.
    """
    try:
        if issubclass(cls, Request):
            return load_request_schema(cls.api_key, version)
        assert issubclass(cls, Response)
        return load_response_schema(cls.api_key, version)
    except UnknownEntity:
        return None


SHARED = [
    pytest.param(cls, theirs, version, id=f"{cls.__name__}-v{version}")
    for cls, version in CLASSES_AND_VERSIONS
    if (theirs := kio_class(cls, version))
]


def choose(name: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Restrict generated values to those that kio's types can express."""
    if name.endswith("error_code"):
        return st.sampled_from([code.value for code in ErrorCode])
    if name in ("timestamp", "log_append_time_ms", "retention_time_ms"):
        return st.integers(-1, 2**40)
    if name in ("session_lifetime_ms", *PERIODS):  # kio computes with floats, which are exact up to 2 ** 53.
        return st.integers(0, 2**53 // 1000)
    if name in ("transaction_start_time_ms", *TIMES_OF_TOKENS):  # kio cannot represent -1 in these fields.
        return st.integers(0, 2**40)
    return values


def plain(value: Any) -> Any:
    """Convert a value of kio's types to the protocol's types. For example, a `timedelta` becomes milliseconds.

    A message or a struct of kio becomes the list of the values in its fields.
    """
    if is_dataclass(value):
        return [plain_field(field.metadata.get("kafka_type"), getattr(value, field.name)) for field in fields(value)]
    return [plain(each) for each in value] if isinstance(value, tuple) else value


def plain_field(kind: str | None, value: Any) -> Any:
    match kind, value:
        case "uuid", None:
            return UUID(int=0)
        case "datetime_i64", None:
            return -1
        case "datetime_i64", when:
            return (when - EPOCH) // MILLISECOND
        case "timedelta_i32" | "timedelta_i64", duration:
            return duration // MILLISECOND
        case "error_code", code:
            return code.value
    return plain(value)


def ours(value: Any, version: int) -> Any:
    """Convert HMB's value to the form that `plain` returns."""
    if isinstance(value, Struct):
        here = [name for name, field in value.fields.items() if version in version_range(field.versions)]
        return [ours(getattr(value, name), version) for name in here]
    return [ours(each, version) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("cls", "theirs", "version"), SHARED)
@given(data=st.data())
@settings(max_examples=5, deadline=None)
def test_same_values_and_same_bytes(cls: type[Struct], theirs: Any, version: int, data: st.DataObject) -> None:
    message = data.draw(messages(cls, version, choose))
    encoded = message.encode(version)
    entity, size = entity_reader(theirs)(encoded, 0)
    assert size == len(encoded)
    assert plain(entity) == ours(message, version)
    out = io.BytesIO()
    entity_writer(theirs)(out, entity)
    assert out.getvalue() == encoded
    assert cls.decode(out.getvalue(), version) == message


@pytest.mark.parametrize("cls", CLASSES)
def test_all_versions_of_kafka_4_are_compared(cls: type[Struct]) -> None:
    compared = [version for each, version in CLASSES_AND_VERSIONS if each is cls and kio_class(cls, version)]
    assert compared == list(range(compared[0], cls.versions.stop))
