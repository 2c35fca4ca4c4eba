"""Decodes metrics in OpenTelemetry's format `MetricsData`, which is encoded with protobuf.

A protobuf message is a sequence of fields. Each field begins with a varint: the field's number times 8, plus the wire
type. The wire type determines how the value after this varint is encoded:
    0  varint     1  8 bytes, little endian     2  length (varint) and bytes     5  4 bytes, little endian

The value of a field can be another protobuf message. The field then has wire type 2, so its value is a length and
bytes. This module reads only the following fields. The number of each field is in parentheses:
    message                       fields
    MetricsData                   resource_metrics (1)
    resource_metrics              scope_metrics (2)
    scope_metrics                 metrics (2)
    metrics                       name (1), and one of gauge (5), sum (7), histogram (9)
    gauge, sum, histogram         data_points (1)
    data point of a gauge, sum    attributes (7), and one of as_double (4), as_int (6)
    data point of a histogram     attributes (9), count (4), sum (5)
    attributes                    key (1), value (2)
    value                         one of string_value (1), int_value (3)

For example, the bytes `0a 03 66 6f 6f` encode the name "foo". `0a` is 10: 8 times the field number 1, plus the
wire type 2. `03` is the length of "foo".

Source: opentelemetry-proto, `opentelemetry/proto/metrics/v1/metrics.proto`; KIP-714.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from hmb.printable import printable
from hmb.protocol.errors import corrupt_message

VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5  # protobuf's wire types: the encodings of a field's value
LONGEST_VARINT = 10  # bytes
FIXED_SIZES = {FIXED_64: 8, FIXED_32: 4}
_DOUBLE, _INT64 = Struct("<d"), Struct("<q")
GAUGE, SUM, HISTOGRAM = 5, 7, 9  # the fields of `Metric` that contain data points
EMPTY = memoryview(b"")

Field = tuple[int, int, int | memoryview]  # number, wire type, value


class MetricValue(NamedTuple):
    """One value of a metric. A histogram has two values, whose names end with `.count` and `.sum`."""

    name: str
    attributes: tuple[tuple[str, str], ...]
    value: float

    def __str__(self) -> str:
        labels = ",".join(f"{key}={value}" for key, value in self.attributes)
        return f"{self.name}{{{labels}}} = {self.value:g}" if labels else f"{self.name} = {self.value:g}"


def decode_metrics(data: bytes) -> list[MetricValue]:
    """Return all values in a `MetricsData` message. Raises CORRUPT_MESSAGE."""
    return [
        value
        for resource in _messages(memoryview(data), 1)
        for scope in _messages(resource, 2)
        for metric in _messages(scope, 2)
        for value in _values(metric)
    ]


def _values(metric: memoryview) -> Iterator[MetricValue]:
    name = ""
    for number, _, value in _fields(metric):
        if number == 1 and isinstance(value, memoryview):
            name = _text(value)
        elif number in (GAUGE, SUM, HISTOGRAM) and isinstance(value, memoryview):
            for point in _messages(value, 1):
                yield from _point(name, point, number == HISTOGRAM)


def _point(name: str, point: memoryview, is_histogram: bool) -> Iterator[MetricValue]:
    attributes: list[tuple[str, str]] = []
    numbers: dict[int, memoryview] = {}
    for number, wire_type, value in _fields(point):
        if wire_type == FIXED_64 and isinstance(value, memoryview):
            numbers[number] = value
        elif number == (9 if is_histogram else 7) and isinstance(value, memoryview):
            attributes.append(_attribute(value))
    labels = tuple(attributes)
    if is_histogram:
        if 4 in numbers:
            yield MetricValue(f"{name}.count", labels, _INT64.unpack(numbers[4])[0])
        if 5 in numbers:
            yield MetricValue(f"{name}.sum", labels, _DOUBLE.unpack(numbers[5])[0])
    elif 4 in numbers:
        yield MetricValue(name, labels, _DOUBLE.unpack(numbers[4])[0])
    elif 6 in numbers:
        yield MetricValue(name, labels, _INT64.unpack(numbers[6])[0])


def _attribute(data: memoryview) -> tuple[str, str]:
    """Return the key and the value of an attribute. A value that is neither a text nor a whole number becomes ""."""
    key = _text(next(_messages(data, 1), EMPTY))
    for number, _, value in _fields(next(_messages(data, 2), EMPTY)):
        if number == 1 and isinstance(value, memoryview):
            return key, _text(value)
        if number == 3 and isinstance(value, int):
            return key, str(value)
    return key, ""


def _text(data: memoryview) -> str:
    """Decode a text for the log. Replace line breaks, so that a client cannot add lines of its own to the log."""
    return printable(bytes(data).decode(errors="replace"))


def _messages(data: memoryview, wanted: int) -> Iterator[memoryview]:
    """Yield the bytes of each protobuf field whose field number is `wanted`."""
    for number, _, value in _fields(data):
        if number == wanted and isinstance(value, memoryview):
            yield value


def _fields(data: memoryview) -> Iterator[Field]:
    """Yield the fields of a protobuf message. The value of a varint is an int, and all other values are bytes."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == VARINT:
            value, position = _varint(data, position)
            yield number, wire_type, value
            continue
        size = FIXED_SIZES.get(wire_type, -1)
        if wire_type == BYTES:
            size, position = _varint(data, position)
        if not 0 <= size <= len(data) - position:
            raise corrupt_message(f"metrics: field {number} has the wire type {wire_type} and {size} bytes")
        yield number, wire_type, data[position : position + size]
        position += size


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    """Decode a varint: 7 bits in each byte, the lowest bits first. Return its value and the position after it."""
    value = 0
    for index, byte in enumerate(data[position : position + LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, position + index + 1
    raise corrupt_message("metrics: a varint does not end")
