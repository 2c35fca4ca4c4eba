"""Show a frame in one of three ways: as fields with their bytes, as JSON, or as one line.

A frame is a request, a response, or a sequence of record batches without a request. A request contains the
numbers of its API and its version, so this module can find the class that decodes the request. A response does
not contain these numbers. Code that creates a `WireFrame` for a response must therefore pass the class and the
version.
"""

from __future__ import annotations

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
from hmb.storage.dump.entries import content_as_json, text_or_base64
from hmb.storage.dump.hexadecimal import FieldEntry

from ..shared.output import plural

ERROR_NAMES = {int(code): code.name for code in ErrorCode}
NO_VERSION = -1
PATH_TO_RECORDS = re.compile(r"^.*\brecords\.(?=(batches|messages)\[)")
SHORT = 16  # `brief` shows a value of at most this number of bytes in full
IDENTITIES = frozenset({  # fields whose default value can be a real id, for example partition 0
    "acks", "api_key", "batch_index", "broker_id", "index", "key_type", "leader_id", "node_id", "partition",
    "partition_id", "partition_index",
})  # fmt: skip


class WireFrame(NamedTuple):
    """The bytes of one message, with the class and the version that decode them."""

    kind: Literal["request", "response", "records"]
    wire: memoryview
    message: type[Request] | type[Response] | None  # None: HMB does not know the API or its version.
    version: int
    sized: bool = True  # whether the bytes begin with their size; False for record batches

    @property
    def start(self) -> int:
        """The position of the header: the number of bytes before it."""
        return SIZE if self.sized else 0

    def header(self) -> tuple[Any, int]:
        """Return the header and the position after it. Raises ProtocolError if the header cannot be decoded."""
        known = self.message
        if self.kind == "request":
            return RequestHeader.decode_prefix(
                self.wire, known.header_version(self.version) if known else 1, self.start
            )
        assert known is not None
        return ResponseHeader.decode_prefix(self.wire, known.header_version(self.version), self.start)

    def decode(self) -> tuple[Any, Any]:
        """Return the header and the body of the message. If HMB does not know its API or version, the body is None.

        Raises ProtocolError if the bytes cannot be decoded.
        """
        header, position = self.header()
        return header, self.message and self.message.decode_prefix(self.wire, self.version, position)[0]

    def fields(self, problems: list[str]) -> Iterator[FieldEntry]:
        """Yield every field with its bytes. For each error, append a description to `problems`."""
        if self.kind == "records":
            lines = annotate_records(self.wire, 0, "", problems)
        else:
            may_be_cut = self.kind == "response" and self.message is not None and self.message.api_key is ApiKey.FETCH
            lines = annotate_frame(self._lines(), self.wire, problems, may_be_cut=may_be_cut)
        for line, is_inside in lines:
            yield FieldEntry(line.offset, len(line.data), line.data, line.path, line.value, is_inside, line.kind)
            # Extra bytes ("left") after a request are not a problem, because brokers ignore them.
            if line.path == "left" and self.kind == "response":
                problems.append(f"byte {line.offset}: {len(line.data)} bytes are left after the message")
        if self.sized and not problems and (size := _size(self.wire)) != len(self.wire) - SIZE:
            problems.append(f"byte 0: the size is {size}, but {len(self.wire) - SIZE} bytes follow")

    def lines(self, problems: list[str]) -> Iterator[str]:
        """Yield every field as a line of text. For each error, append a description to `problems`.

        The full name of a field begins with the names of the fields that contain it. For fields of a record batch,
        these names would be too long. The method therefore leaves out everything before the batch. The name then
        begins, for example, with `batches[0]` or `messages[0]`.
        """
        for field in self.fields(problems):
            yield replace(field, field=PATH_TO_RECORDS.sub("", field.field)).line()

    def title(self) -> str:
        """Return a heading such as `Produce request v9, 214 bytes`."""
        if self.kind == "records":
            return f"records, {len(self.wire)} bytes"
        if self.version == NO_VERSION:
            return f"no message, {plural(len(self.wire), 'byte')}"
        return f"{self.api} {self.kind} v{self.version}, {len(self.wire)} bytes"

    @property
    def is_unknown(self) -> bool:
        """Whether the frame is a request with an API or a version that HMB does not know."""
        return self.kind == "request" and self.message is None and self.version != NO_VERSION

    @property
    def api(self) -> str:
        """The name of the API as Kafka's documentation writes it."""
        if self.message is not None:
            return api_name(self.message.api_key)
        key = int.from_bytes(self.wire[self.start : self.start + 2], "big", signed=True)
        return api_name(key)

    def _lines(self) -> Iterator[Line]:
        if self.kind == "request":
            return annotate_request(self.wire, sized=self.sized)
        assert self.message is not None and issubclass(self.message, Response)
        return annotate_response(self.message, self.version, self.wire, sized=self.sized)


def request_frame(wire: memoryview, *, sized: bool = True) -> WireFrame:
    """Return a frame for the bytes of a request. If the bytes are not a request that HMB knows, `message` is None."""
    body = wire[SIZE if sized else 0 :]
    try:
        return WireFrame("request", wire, *request_type(body), sized)
    except UnsupportedVersion as error:
        return WireFrame("request", wire, None, error.header.api_version, sized)
    except ProtocolError:  # The bytes do not begin with a request header.
        return WireFrame("request", wire, None, NO_VERSION, sized)


def fits(frame: WireFrame, *, exactly: bool = True) -> bool:
    """Return whether the bytes of a frame can be decoded as a message of the frame's API and version.

    If `exactly` is true, no bytes may remain after the message.
    """
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


# Show a frame as JSON


def document(frame: WireFrame) -> dict[str, Any]:
    """Return the message as a dict for JSON. It contains the decoded fields, but not the encoded bytes."""
    fields: dict[str, Any] = {"type": frame.kind}
    if frame.kind == "records":
        return fields | {"size": len(frame.wire), "batches": batches_as_json(frame.wire)}
    fields |= {"api": frame.api, "version": frame.version, "size": len(frame.wire)}
    with suppress(ProtocolError):
        header, body = frame.decode()
        fields |= {"header": as_json(header), "body": as_json(body)}
    return fields


def as_json(value: Any) -> Any:
    """Return a part of a message as a value for JSON.

    Bytes become text or base64. A field with records becomes a list of record batches, each with its records.
    """
    if isinstance(value, Struct):
        fields: dict[str, Any] = {}
        for name in value.fields:
            fields |= _named(name, getattr(value, name))
        unknown = {str(tag): data.hex() for tag, data in value.unknown_tagged_fields.items()}
        return fields | ({"unknown_tagged_fields": unknown} if unknown else {})
    return [as_json(each) for each in value] if isinstance(value, list) else value


def batches_as_json(records: memoryview) -> list[dict[str, Any]]:
    """Return the complete batches as dicts for JSON. If a batch cannot be decoded, its dict describes the problem."""
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
    return {"offset": record.offset, "timestamp": record.timestamp, **content_as_json(record)}


# Show a message as one line


def brief(message: Struct) -> str:
    """Return a message as one line, without the fields that have their default value.

    The line always shows the fields in IDENTITIES, because their default value can be a real id. For example, the
    default of the field `partition` is 0. Without this field, the line about partition 0 would not name its partition.
    """
    shown = (
        (name, value)
        for name, field in message.fields.items()
        if (value := getattr(message, name)) != field.default_value() or name in IDENTITIES
    )
    return ", ".join(f"{name}={_brief_value(value, name)}" for name, value in shown)


def _brief_value(value: Any, name: str) -> str:
    if isinstance(value, Struct):
        return f"{{{brief(value)}}}"
    if isinstance(value, list):
        return f"[{', '.join(_brief_value(each, name) for each in value)}]"
    if isinstance(value, memoryview) or (isinstance(value, bytes) and len(value) > SHORT):
        return f"{len(value)} bytes"
    if name == "error_code" and value in ERROR_NAMES:
        return ERROR_NAMES[value]
    return str(value) if not isinstance(value, str | bytes) else repr(value)
