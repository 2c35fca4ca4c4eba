"""Shows the bytes of a batch or a message, and names the field to which each byte belongs.

For example, a batch with the base offset 7 is shown as:
    000000  00 00 00 00 00 00 00 07                          base_offset = 7
    000008  00 00 00 3f                                      batch_length = 63
    ...
    00003d  14                                               records[0].length = 10
    00003e  00                                               records[0].attributes = 0

The modules `batch`, `record` and `legacy.message` describe the formats. If the records are compressed, one line shows
all compressed bytes together. The next lines show the decompressed bytes, field by field. In these lines, position 0 is
the first decompressed byte.

The function `annotate_batch` yields pairs (line, is_decompressed). `line` is a `Line` (`protocol.annotate`).
`is_decompressed` is True if the line shows decompressed bytes.

The functions of this module yield lines that show the fields of a batch, in the order of the bytes. When they
reach a malformed field, they raise KafkaError.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from datetime import timedelta
from struct import Struct
from typing import NamedTuple

from hmb.protocol.annotate import Line, Walk
from hmb.protocol.errors import invalid_record
from hmb.records.batch import (
    DELETE_HORIZON_BIT,
    MAGIC,
    MAGIC_POSITION,
    OFFSET_AND_LENGTH,
    RECORD_BATCH_OVERHEAD,
    RecordBatch,
)
from hmb.records.batch import HEADER as BATCH_HEADER
from hmb.records.compression import CODEC_MASK, Codec, decompress
from hmb.records.control import MARKER_KEY, MARKER_VALUE, ControlType
from hmb.records.legacy.message import KEY_START, MESSAGE_HEADER, Message
from hmb.records.reading import Batch
from hmb.records.record import NO_TIMESTAMP
from hmb.records.varint import VarintError, read_varint
from hmb.units import EPOCH

_INT32 = Struct(">i")
_KINDS = {"q": "int64", "i": "int32", "h": "int16", "b": "int8", "I": "uint32"}  # keys: letters of the struct module


class AnnotatedNumber(NamedTuple):
    """A number, with a text that explains it. For example, the text of a timestamp is its date."""

    number: int
    meaning: str

    def __repr__(self) -> str:
        return f"{self.number}  {self.meaning}" if self.meaning else str(self.number)


def annotate_batch(batch: Batch, position: int) -> Iterator[tuple[Line, bool]]:
    """Yield pairs (line, is_decompressed) for a batch. `position` is the position of the batch in its file.

    `is_decompressed` is True if the line shows decompressed bytes.
    """
    if isinstance(batch, RecordBatch):
        return _record_batch(batch, position)
    return _message(batch, position)


def annotate_header(batch: Batch, position: int) -> Iterator[Line]:
    """Yield a line for each field of the header of a batch or a message."""
    if isinstance(batch, RecordBatch):
        names: tuple[str, ...] = RecordBatch._fields[:-1]
        header = BATCH_HEADER
    else:
        names = Message._fields[: 5 + batch.magic]  # A message of magic 1 also has a timestamp.
        header = Struct(MESSAGE_HEADER.format + "q" * batch.magic)
    for line in fixed_fields(header, names, batch.view, 0):
        yield line._replace(offset=position + line.offset, value=_header_note(batch, line.path, line.value))


def annotate_cut_header(buffer: memoryview, position: int) -> Iterator[Line]:
    """Yield a line for each complete field of a header that is cut off at the end of the buffer.

    The byte at position 16 of the buffer is the *magic*, the number of the format. It decides which fields the
    header has. If the buffer ends before the magic, the function yields only the offset and the length. All formats
    begin with these two fields.
    """
    form: Struct = OFFSET_AND_LENGTH
    names: tuple[str, ...] = RecordBatch._fields[:2]
    if len(buffer) > MAGIC_POSITION:
        is_batch = buffer[MAGIC_POSITION] == MAGIC
        form, names = (BATCH_HEADER, RecordBatch._fields[:-1]) if is_batch else (MESSAGE_HEADER, Message._fields[:5])
    for line in fixed_fields(form, names, buffer, 0):
        yield line._replace(offset=position + line.offset)


def fixed_fields(form: Struct, names: tuple[str, ...], buffer: memoryview, position: int) -> Iterator[Line]:
    """Yield a line for each of the fields `names`. The first field begins at `position` in the buffer.

    `form` describes the types of the fields. The function stops at the first field that is not complete in the
    buffer.
    """
    for name, code in zip(names, form.format.lstrip(">"), strict=True):
        field = Struct(f">{code}")
        end = position + field.size
        if end > len(buffer):
            return
        yield Line(position, buffer[position:end], name, field.unpack_from(buffer, position)[0], _KINDS[code])
        position = end


def timestamp_note(timestamp: int) -> AnnotatedNumber:
    """Return a timestamp (ms since 1970), with a text that shows its date."""
    if timestamp == NO_TIMESTAMP:
        return AnnotatedNumber(timestamp, "none")
    try:
        moment = EPOCH + timedelta(milliseconds=timestamp)
    except OverflowError:
        return AnnotatedNumber(timestamp, "not a date")
    return AnnotatedNumber(timestamp, moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"))


def _header_note(batch: Batch, name: str, value: int) -> int | AnnotatedNumber:
    if name == "attributes":
        names = [_codec_name(batch), batch.timestamp_type.label]
        if isinstance(batch, RecordBatch):
            names += ["transactional"] * batch.is_transactional + ["control"] * batch.is_control
            names += ["delete horizon"] * bool(batch.attributes & DELETE_HORIZON_BIT)
        return AnnotatedNumber(value, ", ".join(names))
    if name == "crc":
        return AnnotatedNumber(value, f"{value:#010x}")
    return timestamp_note(value) if name.endswith("timestamp") else value


def _codec_name(batch: Batch) -> str:
    number = batch.attributes & CODEC_MASK
    return Codec(number).name.lower() if number in set(Codec) else f"unknown codec {number}"


def _record_batch(batch: RecordBatch, position: int) -> Iterator[tuple[Line, bool]]:
    yield from ((line, False) for line in annotate_header(batch, position))
    content, start = batch.view[RECORD_BATCH_OVERHEAD:], position + RECORD_BATCH_OVERHEAD
    is_inside = batch.codec is not Codec.NONE
    if is_inside:
        yield Line(start, content, "records", content, "bytes"), False
        start = 0
    data = decompress(batch.codec, content)
    end = 0
    for index in range(batch.records_count):
        for line in _record(data, end, batch):
            end = line.offset + len(line.data)
            yield line._replace(offset=start + line.offset, path=f"records[{index}].{line.path}"), is_inside
    if end < len(data):
        raise invalid_record(f"{len(data) - end} bytes are left after the records")


def _record(data: bytes, position: int, batch: RecordBatch) -> Iterator[Line]:
    """Yield the lines of one record. A line with a delta also shows the resulting offset or timestamp."""
    try:
        length, position = yield from _varint(data, position, "length")
        end = position + length
        yield _line(data, position, position + 1, "attributes", data[position], "int8")
        delta, after = read_varint(data, position + 1)
        timestamp = AnnotatedNumber(delta, f"-> {timestamp_note(batch.base_timestamp + delta)!r}")
        yield _line(data, position + 1, after, "timestamp_delta", timestamp, "varlong")
        delta, position = read_varint(data, after)
        offset = AnnotatedNumber(delta, f"-> {batch.base_offset + delta}")
        yield _line(data, after, position, "offset_delta", offset, "varint")
        if batch.is_control:
            position = yield from _control(data, position)
        else:
            position = yield from _bytes(data, position, "key")
            position = yield from _bytes(data, position, "value")
        count, position = yield from _varint(data, position, "headers.count")
        for index in range(count):
            position = yield from _bytes(data, position, f"headers[{index}].key")
            position = yield from _bytes(data, position, f"headers[{index}].value")
    except (IndexError, VarintError) as error:
        raise invalid_record(f"a record cannot be read: {error}") from error
    if position != end:
        raise invalid_record(f"a record claims {length} bytes and does not fill them")


def _line(data: bytes, start: int, end: int, path: str, value: object, kind: str) -> Line:
    return Line(start, memoryview(data)[start:end], path, value, kind)


def _varint(data: bytes, position: int, path: str) -> Generator[Line, None, tuple[int, int]]:
    value, end = read_varint(data, position)
    yield _line(data, position, end, path, value, "varint")
    return value, end


def _bytes(data: bytes, position: int, path: str) -> Walk:
    size, position = yield from _varint(data, position, f"{path}.size")
    return (yield from _content(data, position, size, path))


def _content(data: bytes, position: int, size: int, path: str) -> Walk:
    """Yield one line for the bytes of a key or a value. If its `size` is 0 or -1 (null), yield no line."""
    if size <= 0:
        return position
    end = position + size
    if end > len(data):
        raise invalid_record(f"{path} claims {size} bytes of {len(data) - position} left")
    yield _line(data, position, end, path, data[position:end], "bytes")
    return end


def _control(data: bytes, position: int) -> Walk:
    for path, form, names in (
        ("key", MARKER_KEY, ("version", "type")),
        ("value", MARKER_VALUE, ("version", "coordinator_epoch")),
    ):
        size, position = yield from _varint(data, position, f"{path}.size")
        # The key and the value of COMMIT and ABORT markers have fixed sizes. If a size differs, show only the bytes.
        if size != form.size or position + size > len(data):
            position = yield from _content(data, position, size, path)
            continue
        for line in fixed_fields(form, names, memoryview(data), position):
            is_known = line.path == "type" and line.value in set(ControlType)
            value = AnnotatedNumber(line.value, ControlType(line.value).name) if is_known else line.value
            yield line._replace(path=f"{path}.{line.path}", value=value)
        position += size
    return position


def _message(message: Message, position: int) -> Iterator[tuple[Line, bool]]:
    for line in _plain_message(message, position):
        yield line, False
    if message.codec is Codec.NONE:
        return
    at = 0
    for index, inner in enumerate(message.inner_messages()):
        for line in _plain_message(inner, at):
            yield line._replace(path=f"messages[{index}].{line.path}"), True
        at += inner.size


def _plain_message(message: Message, position: int) -> Iterator[Line]:
    """Yield the lines of one message: its header, its key and its value.

    If the message is a wrapper, its value is a compressed message set. The function yields one line for the
    compressed bytes.
    """
    yield from annotate_header(message, position)
    at = KEY_START[message.magic]
    for path, content in zip(("key", "value"), message.key_and_value(), strict=True):
        size = -1 if content is None else len(content)
        length = _INT32.unpack_from(message.view, at)[0]
        yield Line(position + at, message.view[at : at + 4], f"{path}.size", length, "int32")
        at += 4
        if content:
            is_compressed = path == "value" and message.codec is not Codec.NONE
            yield Line(position + at, content, path, content if is_compressed else bytes(content), "bytes")
        at += max(size, 0)
