"""Any message, byte by byte: which bytes are which field.

    000000  00 00 00 15                                      size = 21
    000004  00 03                                            header.api_key = 3  METADATA
    ...
    000013  00 00 00 01                                      topics.count = 1
    000017  00 04 74 65 73 74                                topics[0].name = 'test'

The plan of a version (schema.py) says in which order fields follow one another; here it is walked with the bytes in
hand, and each field yields a line instead of filling a message.  Where bytes are malformed, the lines up to
there come first and then the ProtocolError.
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

from hmb.protocol import primitives as p
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.connection import ServerConnection
from hmb.protocol.errors import ErrorCode
from hmb.protocol.headers import RequestHeader, ResponseHeader
from hmb.protocol.schema import Field, Plan, Response, Struct, version_range

ROW = 16  # bytes in a row of text


class Line(NamedTuple):
    """Some bytes and what they mean."""

    offset: int
    data: memoryview
    path: str
    value: Any


Walk: TypeAlias = Generator[Line, None, int]  # yields lines, returns the position after them


def annotate(message: type[Struct], version: int, buffer: memoryview, position: int = 0, path: str = "") -> Walk:
    """The fields of one struct that begins at `position`."""
    with suppress(*p.MALFORMED):
        return (yield from _struct(message.compile(version), buffer, position, path))
    _, end = message.decode_prefix(buffer, version, position)  # raises, and says what is wrong
    return end


def annotate_request(buffer: memoryview) -> Iterator[Line]:
    """A request as a client sent it, from its length on."""
    yield Line(0, buffer[:4], "size", p.INT32.decode(buffer, 0)[0])
    header, request = ServerConnection().receive(buffer[4:])
    version = header.api_version
    position = yield from annotate(RequestHeader, request.header_version(version), buffer, 4, "header.")
    yield from annotate(type(request), version, buffer, position)


def annotate_response(response: type[Response], version: int, buffer: memoryview) -> Iterator[Line]:
    """A response as a broker sent it, from its length on; what it answers is not in it and must be known."""
    yield Line(0, buffer[:4], "size", p.INT32.decode(buffer, 0)[0])
    position = yield from annotate(ResponseHeader, response.header_version(version), buffer, 4, "header.")
    yield from annotate(response, version, buffer, position)


def render(lines: Iterable[Line]) -> Iterator[str]:
    """Lines of text: offset, hex, `path = value`; long values take several rows."""
    for offset, data, path, value in lines:
        yield from rows(offset, data, f"{path} = {_meaning(path, value)}")


def rows(offset: int, data: memoryview, meaning: str) -> Iterator[str]:
    """Bytes in rows of hex, the first with their meaning."""
    for start in range(0, len(data) or 1, ROW):
        text = f"{offset + start:06x}  {data[start : start + ROW].hex(' '):<{3 * ROW - 1}}  "
        yield (text + meaning if start == 0 else text).rstrip()


def _meaning(path: str, value: Any) -> str:
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
    if field.struct is not None:
        if version in version_range(field.nullable):
            present, position = p.INT8.decode(buffer, start)
            yield Line(start, buffer[start:position], f"{path}.present", present)
            if present < 0:
                return position
        return (yield from _struct(field.struct.compile(version, flexible), buffer, position, f"{path}."))
    if field.item is not None:
        count, position = field.length(flexible).decode(buffer, start)
        yield Line(start, buffer[start:position], f"{path}.count", count)
        for index in range(count):
            position = yield from _field(field.item, plan, buffer, position, f"{path}[{index}]")
        return position
    if field.kind == "records":
        size, position = field.length(flexible).decode(buffer, start)
        yield Line(start, buffer[start:position], f"{path}.size", size)
    value, end = field.codec(version, flexible).decode(buffer, start)
    if field.kind != "records" or value:
        yield Line(position, buffer[position:end], path, value)
    return end


def _tagged_fields(plan: Plan, buffer: memoryview, position: int, path: str) -> Walk:
    count, end = p.UVARINT.decode(buffer, position)
    yield Line(position, buffer[position:end], f"{path}tagged_fields.count", count)
    for _ in range(count):
        start = end
        tag, position = p.UVARINT.decode(buffer, start)
        size, position = p.UVARINT.decode(buffer, position)
        end = position + size
        yield Line(start, buffer[start:position], f"{path}tag, size", (tag, size))
        if tag in plan.tagged:
            name = plan.tagged[tag][0]
            yield from _field(plan.struct.fields[name], plan, buffer[:end], position, path + name)
        else:
            yield Line(position, buffer[position:end], f"{path}unknown_tagged_fields[{tag}]", buffer[position:end])
    return end
