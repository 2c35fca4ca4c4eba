"""Hypothesis strategies that generate any message in any version. They are derived from the schema."""

from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import strategies as st

from hmb.protocol.fields import Field, version_range
from hmb.protocol.messages import API_KEYS, request_class, response_class
from hmb.protocol.schema import Struct

CLASSES = [find(key) for key in API_KEYS for find in (request_class, response_class)]
CLASSES_AND_VERSIONS = [(cls, version) for cls in CLASSES for version in cls.versions]
IDS = [f"{cls.__name__}-v{version}" for cls, version in CLASSES_AND_VERSIONS]

Values = st.SearchStrategy[Any]
Choose = Callable[[str, Values], Values]  # (field name, strategy for its type) -> the strategy to use


def signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


PRIMITIVES: dict[str, Values] = {
    "bool": st.booleans(),
    "int8": signed(8),
    "int16": signed(16),
    "int32": signed(32),
    "int64": signed(64),
    "uint16": st.integers(0, 2**16 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "float64": st.floats(allow_nan=False),
    "uuid": st.uuids(),
    "string": st.text(max_size=20) | st.just("x" * 300),
    "bytes": st.binary(max_size=20),
    "records": st.binary(max_size=300).map(memoryview),
}


def whole_type(name: str, values: Values) -> Values:
    """Choose among all values of a field's type."""
    return values


def values(name: str, field: Field, version: int, choose: Choose) -> Values:
    if field.struct is not None:
        strategy: Values = messages(field.struct, version, choose)
    elif field.item is not None:
        strategy = st.lists(values(name, field.item, version, choose), max_size=2)
    else:
        strategy = choose(name, PRIMITIVES[field.kind])
    return st.none() | strategy if version in version_range(field.nullable) else strategy


def _messages(cls: type[Struct], version: int, choose: Choose = whole_type) -> Values:
    """Return a strategy for messages of one version. Fields that do not exist in the version have their defaults."""
    present = {name: field for name, field in cls.fields.items() if version in version_range(field.versions)}
    return st.builds(cls, **{name: values(name, field, version, choose) for name, field in present.items()})


messages: Callable[..., Values] = cache(_messages)
