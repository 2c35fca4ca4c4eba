"""A frame of the wire as `decode` and `sniff` show it: what it is, its fields one by one, its message as JSON.

A frame is a request, the answer to one, or record batches alone.  A request names its API and version; a response
names neither, so whoever has one must know what it answers.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from hmb.protocol.annotate import SIZE, Line, annotate_request, annotate_response
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.connection import UnsupportedVersion, request_type
from hmb.protocol.errors import ErrorCode, KafkaError, ProtocolError
from hmb.protocol.headers import RequestHeader, ResponseHeader
from hmb.protocol.messages import api_name
from hmb.protocol.schema import Request, Response, Struct
from hmb.records import Codec, Message, Record, RecordBatch
from hmb.records.annotate_frame import annotate_frame, annotate_records
from hmb.records.reading import iter_batches
from hmb.storage.dump.entries import counted, text_or_base64
from hmb.storage.dump.hexadecimal import FieldEntry

API_NAMES = {int(key): key.name for key in ApiKey}
ERROR_NAMES = {int(code): code.name for code in ErrorCode}
NO_VERSION = -1
WHERE_RECORDS_ARE = re.compile(r"^.*\brecords\.(?=(batches|messages)\[)")
SHORT = 16  # bytes that a line of a few words shows


class Frame(NamedTuple):
    """Some bytes, and what they are taken for."""

    kind: Literal["request", "response", "records"]
    wire: memoryview
    message: type[Request] | type[Response] | None  # None: an API or a version that is not known here
    version: int
    sized: bool = True  # begins with its length; records never do

    @property
    def start(self) -> int:
        return SIZE if self.sized else 0

    def header(self) -> tuple[Any, int]:
        """The header, and where it ends; ProtocolError if it cannot be read."""
        known = self.message
        if self.kind == "request":
            return RequestHeader.decode_prefix(
                self.wire, known.header_version(self.version) if known else 1, self.start
            )
        assert known is not None
        return ResponseHeader.decode_prefix(self.wire, known.header_version(self.version), self.start)

    def decode(self) -> tuple[Any, Any]:
        """Header and body, which is None if its layout is not known; ProtocolError if they cannot be read."""
        header, position = self.header()
        return header, self.message and self.message.decode_prefix(self.wire, self.version, position)[0]

    def fields(self, problems: list[str]) -> Iterator[FieldEntry]:
        """Every byte with its field; what is wrong is added to the problems."""
        if self.kind == "records":
            lines = annotate_records(self.wire, 0, "", problems)
        else:
            may_be_cut = self.kind == "response" and self.message is not None and self.message.api_key is ApiKey.FETCH
            lines = annotate_frame(self._lines(), self.wire, problems, may_be_cut=may_be_cut)
        for line, is_inside in lines:
            yield FieldEntry(line.offset, len(line.data), line.data, line.path, line.value, is_inside, line.kind)
            if line.path == "left" and self.kind == "response":  # a broker ignores what follows a request
                problems.append(f"byte {line.offset}: {len(line.data)} bytes are left behind the message")
        if self.sized and not problems and (size := _size(self.wire)) != len(self.wire) - SIZE:
            problems.append(f"byte 0: the size is {size}, but {len(self.wire) - SIZE} bytes follow")

    def lines(self, problems: list[str]) -> Iterator[str]:
        """The same as text; what stands in a batch does without the path to the batch, which stands above it."""
        for field in self.fields(problems):
            yield replace(field, field=WHERE_RECORDS_ARE.sub("", field.field)).line()

    def title(self) -> str:
        """Produce request v9, 214 bytes"""
        if self.kind == "records":
            return f"records, {len(self.wire)} bytes"
        if self.version == NO_VERSION:
            return f"no message, {counted(len(self.wire), 'byte')}"
        return f"{self.api} {self.kind} v{self.version}, {len(self.wire)} bytes"

    @property
    def is_unknown(self) -> bool:
        """A request of an API or a version that is not known here."""
        return self.kind == "request" and self.message is None and self.version != NO_VERSION

    @property
    def api(self) -> str:
        """The name of the API as Kafka's documentation writes it."""
        if self.message is not None:
            return api_name(self.message.api_key)
        key = int.from_bytes(self.wire[self.start : self.start + 2], "big", signed=True)
        return API_NAMES.get(key, f"api key {key}")

    def _lines(self) -> Iterator[Line]:
        if self.kind == "request":
            return annotate_request(self.wire, sized=self.sized)
        assert self.message is not None and issubclass(self.message, Response)
        return annotate_response(self.message, self.version, self.wire, sized=self.sized)


def request_frame(wire: memoryview, *, sized: bool = True) -> Frame:
    """The bytes as a request, whatever they are."""
    body = wire[SIZE if sized else 0 :]
    try:
        return Frame("request", wire, *request_type(body), sized)
    except UnsupportedVersion as error:
        return Frame("request", wire, None, error.header.api_version, sized)
    except ProtocolError:  # not even a header
        return Frame("request", wire, None, NO_VERSION, sized)


def fits(frame: Frame, *, exactly: bool = True) -> bool:
    """Whether the bytes are this message; `exactly`: to the last of them."""
    if frame.message is None or (frame.sized and _size(frame.wire) != len(frame.wire) - SIZE):
        return False
    try:
        _, body_start = frame.header()
        _, end = frame.message.decode_prefix(frame.wire, frame.version, body_start)
    except ProtocolError:
        return False
    return end == len(frame.wire) or not exactly


def _size(wire: memoryview) -> int:
    return int.from_bytes(wire[:SIZE], "big", signed=True)


# As JSON


def document(frame: Frame) -> dict[str, Any]:
    """The message without its bytes."""
    fields: dict[str, Any] = {"type": frame.kind}
    if frame.kind == "records":
        return fields | {"size": len(frame.wire), "batches": batches_as_json(frame.wire)}
    fields |= {"api": frame.api, "version": frame.version, "size": len(frame.wire)}
    with suppress(ProtocolError):
        header, body = frame.decode()
        fields |= {"header": as_json(header), "body": as_json(body)}
    return fields


def as_json(value: Any) -> Any:
    """A message as JSON has it: bytes as text or base64, records as batches."""
    if isinstance(value, Struct):
        fields: dict[str, Any] = {}
        for name in value.fields:
            fields |= _named(name, getattr(value, name))
        unknown = {str(tag): data.hex() for tag, data in value.unknown_tagged_fields.items()}
        return fields | ({"unknown_tagged_fields": unknown} if unknown else {})
    return [as_json(each) for each in value] if isinstance(value, list) else value


def to_json(fields: dict[str, Any]) -> str:
    """One JSON document, without its newline; UUIDs are text."""
    return json.dumps(fields, ensure_ascii=False, default=str)


def batches_as_json(records: memoryview) -> list[dict[str, Any]]:
    """The whole batches; one that cannot be read says why."""
    batches: list[dict[str, Any]] = []
    try:
        for batch in iter_batches(records):
            batches.append(_batch_as_json(batch))
    except KafkaError as error:
        batches.append({"problem": error.message})
    return batches


def _named(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, memoryview):
        return {name: batches_as_json(value)}
    return text_or_base64(name, value) if isinstance(value, bytes) else {name: as_json(value)}


def _batch_as_json(batch: RecordBatch | Message) -> dict[str, Any]:
    fields = batch._asdict()
    del fields["view"]
    try:
        fields["compression"] = Codec(batch.codec).name.lower()
        batch.check()
        fields["records"] = [_record_as_json(record) for record in batch.records()]
    except KafkaError as error:
        fields["problem"] = error.message
    return fields


def _record_as_json(record: Record) -> dict[str, Any]:
    fields: dict[str, Any] = {"offset": record.offset, "timestamp": record.timestamp}
    fields |= text_or_base64("key", record.key) | text_or_base64("value", record.value)
    return fields | {"headers": [{"key": name, **text_or_base64("value", value)} for name, value in record.headers]}


# In few words


def brief(message: Struct) -> str:
    """A message in a line: what is not at its default."""
    said = ((n, v) for n, f in message.fields.items() if (v := getattr(message, n)) != f.absent())
    return ", ".join(f"{name}={_inner(value, name)}" for name, value in said)


def _inner(value: Any, name: str) -> str:
    if isinstance(value, Struct):
        return f"{{{brief(value)}}}"
    if isinstance(value, list):
        return f"[{', '.join(_inner(each, name) for each in value)}]"
    if isinstance(value, memoryview) or (isinstance(value, bytes) and len(value) > SHORT):
        return f"{len(value)} bytes"
    if name == "error_code" and value in ERROR_NAMES:
        return ERROR_NAMES[value]
    return str(value) if not isinstance(value, str | bytes) else repr(value)
