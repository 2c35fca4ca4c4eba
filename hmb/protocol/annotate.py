"""Shows the bytes of a message line by line, and names the field in each line.

For example, a Metadata request for the topic `test` is shown as:
    000000  00 00 00 15                                      size = 21
    000004  00 03                                            header.api_key = 3  METADATA
    ...
    000013  00 00 00 01                                      topics.count = 1
    000017  00 04 74 65 73 74                                topics[0].name = 'test'

The *plan* of a message lists the fields of one version of the message, in the order in which they are encoded
(see `schema`). The functions of this module follow the plan, and yield one `Line` for each field. If a field is
malformed, the functions first yield the lines of all earlier fields, and then raise ProtocolError.

A `Line` object contains the type of its field. The types have the same names as in Kafka's protocol guide, for
example `int16`. A field of the type `compact_length` contains the length plus one, as an unsigned varint. For
example, the length 4 is encoded as 5.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

from hmb.protocol import primitives as p
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.connection import UnsupportedVersion, request_type
from hmb.protocol.errors import ErrorCode, ProtocolError
from hmb.protocol.fields import Field, version_range
from hmb.protocol.headers import RequestHeader, ResponseHeader
from hmb.protocol.schema import Plan, Response, Struct

ROW = 16  # the number of bytes shown in a line of text
SIZE = 4  # the number of bytes in the field that contains a message's length


class Line(NamedTuple):
    """The bytes of one field of a message, and their meaning."""

    offset: int
    data: memoryview
    path: str
    value: Any
    kind: str = ""  # the name of the type in Kafka's protocol guide


Walk: TypeAlias = Generator[Line, None, int]  # yields lines, and returns the position after the last one


def annotate(message: type[Struct], version: int, buffer: memoryview, position: int = 0, path: str = "") -> Walk:
    """Yield a `Line` for each field of the struct at `position`. Raises ProtocolError if the bytes are malformed."""
    with suppress(*p.MALFORMED):
        return (yield from _struct(message.compile(version), buffer, position, path))
    _, end = message.decode_prefix(buffer, version, position)  # The call raises ProtocolError for the bad field.
    return end


def annotate_request(buffer: memoryview, *, sized: bool = True) -> Walk:
    """Yield a `Line` for each field of a request. If `sized` is true, the buffer begins with the request's length.

    If HMB does not support the request's API or version, the function yields only the lines of the header, and then
    raises UnsupportedVersion.
    """
    position = (yield from _size(buffer)) if sized else 0
    try:
        request, version = request_type(buffer[position:])
    except UnsupportedVersion:
        yield from annotate(RequestHeader, 1, buffer, position, "header.")
        raise
    position = yield from annotate(RequestHeader, request.header_version(version), buffer, position, "header.")
    return (yield from annotate(request, version, buffer, position))


def annotate_response(response: type[Response], version: int, buffer: memoryview, *, sized: bool = True) -> Walk:
    """Yield a `Line` for each field of a response: the fields of its header, and then those of its body.

    If `sized` is true, the buffer begins with the response's length, and the first `Line` shows this
    length. The bytes do not show the API and the version, so the caller passes them. Raises ProtocolError
    if the bytes are malformed.
    """
    position = (yield from _size(buffer)) if sized else 0
    position = yield from annotate(ResponseHeader, response.header_version(version), buffer, position, "header.")
    return (yield from annotate(response, version, buffer, position))


def _size(buffer: memoryview) -> Walk:
    if len(buffer) < SIZE:
        raise ProtocolError(f"the bytes end inside the field 'size', after {len(buffer)} of {SIZE} bytes")
    yield Line(0, buffer[:SIZE], "size", p.INT32.decode(buffer, 0)[0], "int32")
    return SIZE


def render(lines: Iterable[Line]) -> Iterator[str]:
    """Yield the text of each `Line`: its offset, its bytes in hexadecimal, and `path = value`.

    A value of more than 16 bytes takes several lines of text.
    """
    for line in lines:
        yield from rows(line.offset, line.data, f"{line.path} = {meaning(line.path, line.value)}")


def rows(offset: int, data: memoryview, meaning: str) -> Iterator[str]:
    """Yield lines of text that show `data` in hexadecimal. The first line also contains `meaning`."""
    for start in range(0, len(data) or 1, ROW):
        text = f"{offset + start:06x}  {data[start : start + ROW].hex(' '):<{3 * ROW - 1}}  "
        yield (text + meaning if start == 0 else text).rstrip()


def meaning(path: str, value: Any) -> str:
    """Return a text that describes the value of a field.

    For an error code or an API key, the text also contains the name. For a byte string (a memoryview), the text is only
    the length.
    """
    if path.endswith("error_code") and value in {int(code) for code in ErrorCode}:
        return f"{value}  {ErrorCode(value).name}"
    if path.endswith("api_key") and value in {int(key) for key in ApiKey}:
        return f"{value}  {ApiKey(value).name}"
    return f"{len(value)} bytes" if isinstance(value, memoryview) else repr(value)


def _struct(plan: Plan, buffer: memoryview, position: int, path: str) -> Walk:
    for name, field in plan.fields.items():
        position = yield from _field(field, plan, buffer, position, path + name)
    if plan.flexible:
        position = yield from _tagged_fields(plan, buffer, position, path)
    return position


def _field(field: Field, plan: Plan, buffer: memoryview, position: int, path: str) -> Walk:
    start, version, flexible = position, plan.version, plan.flexible
    nullable = version in version_range(field.nullable)
    compact = flexible and field.compact
    if field.struct is not None:
        if nullable:
            present, position = p.INT8.decode(buffer, start)
            yield Line(start, buffer[start:position], f"{path}.present", present, "int8")
            if present < 0:
                return position
        return (yield from _struct(field.struct.compile(version, flexible), buffer, position, f"{path}."))
    if field.item is not None or field.kind == "records":
        length, position = field.length(flexible).decode(buffer, start)
        name = "size" if field.item is None else "count"
        yield Line(start, buffer[start:position], f"{path}.{name}", length, "compact_length" if compact else "int32")
        if field.item is None and (left := buffer[position:]) and length > len(left):
            yield Line(position, left, path, left, "records")  # Some bytes are missing: `check_length` will fail.
        p.check_length(length, len(buffer) - position, nullable)
        if field.item is not None:
            for index in range(length):
                position = yield from _field(field.item, plan, buffer, position, f"{path}[{index}]")
            return position
    value, end = field.codec(version, flexible).decode(buffer, start)
    if field.kind != "records" or value:
        is_compact = compact and field.kind in ("string", "bytes")
        yield Line(position, buffer[position:end], path, value, f"compact_{field.kind}" if is_compact else field.kind)
    return end


def _tagged_fields(plan: Plan, buffer: memoryview, position: int, path: str) -> Walk:
    count, end = p.UVARINT.decode(buffer, position)
    yield Line(position, buffer[position:end], f"{path}tagged_fields.count", count, "uvarint")
    seen: set[int] = set()
    for _ in range(count):
        start = end
        tag, position = p.UVARINT.decode(buffer, start)
        size, position = p.UVARINT.decode(buffer, position)
        p.check_length(size, len(buffer) - position, nullable=False)
        if tag in seen:
            raise ValueError(f"tag {tag} occurs twice")
        seen.add(tag)
        end = position + size
        yield Line(start, buffer[start:position], f"{path}tag, size", (tag, size), "uvarint, uvarint")
        if tag in plan.tagged.by_tag:
            name = plan.tagged.by_tag[tag].name
            if end != (yield from _field(plan.struct.fields[name], plan, buffer[:end], position, path + name)):
                raise ValueError(f"tag {tag} has length {size}, but the value of {name} is shorter")
        else:
            data = buffer[position:end]
            yield Line(position, data, f"{path}unknown_tagged_fields[{tag}]", data, "bytes")
    return end
