"""The format of a golden file: a request and its response, each as annotated bytes and as a message.

    Metadata v0: request of kafka-0.8.2.2, response of Kafka 0.8.2.2.

    == request: bytes
    000000  00 00 00 21                                      size = 33
    000004  00 03                                            header.api_key = 3  METADATA
    ...
    == request: message
    RequestHeader(api_key=3, ...)
    MetadataRequest(topics=[...])

    == response: bytes
    (the response follows, in the same two forms as the request)

A message is written as a Python expression that omits fields with default values. If the broker sent no response, the
file contains only the request.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from hmb.protocol.annotate import Line, annotate_request, annotate_response, render
from hmb.protocol.connection import ServerConnection
from hmb.protocol.headers import RequestHeader, ResponseHeader
from hmb.protocol.messages import API_KEYS, request_class, response_class
from hmb.protocol.messages.describe_quorum import ReplicaState
from hmb.protocol.messages.streams_group_heartbeat import Endpoint, KeyValue, TaskIds, TaskOffset
from hmb.protocol.schema import Struct

MESSAGES: list[type] = [*map(request_class, API_KEYS), *map(response_class, API_KEYS)]
SHARED = (ReplicaState, Endpoint, KeyValue, TaskIds, TaskOffset)  # structs that several messages contain
NAMES = {cls.__name__: cls for cls in (*MESSAGES, RequestHeader, ResponseHeader, *SHARED, UUID)}
HEADING = re.compile(r"^== (\w+: \w+)\n", re.MULTILINE)
WIDTH = 110
HIDDEN = re.compile(r"\[hidden\]|\[\d+ bytes\]")  # what `repr` of a message shows instead of a secret


class Side(NamedTuple):
    """A request or a response, as annotated bytes and as a message."""

    wire: bytes  # the frame, including its length
    text: str  # the annotated bytes
    header: Any
    message: Any


def load(path: Path) -> dict[str, Side]:
    """Return the parts of a file: "request" and, if there was a response, "response"."""
    _, *sections = HEADING.split(path.read_text())
    texts = dict(zip(sections[::2], sections[1::2], strict=True))
    return {
        side: parse(texts[f"{side}: bytes"].rstrip(), texts[f"{side}: message"])
        for side in ("request", "response")
        if f"{side}: bytes" in texts
    }


def parse(annotated: str, messages: str) -> Side:
    rows = re.findall(r"^[0-9a-f]{6}  ((?:[0-9a-f]{2} ?)+)", annotated, re.MULTILINE)
    header, message = (eval(text, dict(NAMES)) for text in messages.strip().split("\n", maxsplit=1))
    return Side(bytes.fromhex("".join(rows)), annotated, header, message)


def write(path: Path, title: str, request: bytes, response: bytes) -> None:
    """Write a golden file with annotations. An empty `response` means that the broker sent none."""
    header, question = ServerConnection().receive(memoryview(request)[4:])
    lines = [title, "", *section("request", annotate_request(memoryview(request)), header, question)]
    if response:
        answers, version = response_class(question.api_key), header.api_version
        wire = memoryview(response)
        answer_header, position = ResponseHeader.decode_prefix(wire, answers.header_version(version), 4)
        answer = answers.decode(wire, version, position)
        lines += ["", *section("response", annotate_response(answers, version, wire), answer_header, answer)]
    path.write_text("\n".join(lines) + "\n")


def section(side: str, lines: Iterable[Line], header: Struct, message: Struct) -> Iterator[str]:
    yield f"== {side}: bytes"
    yield from render(lines)
    yield f"== {side}: message"
    yield repr(header)
    yield pretty(message)


def pretty(value: Any, indent: str = "") -> str:
    """Return a Python expression for a message. Long expressions take several lines."""
    if isinstance(value, memoryview):
        return repr(bytes(value))
    text = repr(value)
    if not isinstance(value, Struct | list) or (len(indent) + len(text) <= WIDTH and not HIDDEN.search(text)):
        return text
    inner = indent + "    "
    if isinstance(value, list):
        return "[\n" + "".join(f"{inner}{pretty(each, inner)},\n" for each in value) + indent + "]"
    values = {name: getattr(value, name) for name in value.fields}
    said = {name: each for name, each in values.items() if each != value.fields[name].default_value()}
    fields = "".join(f"{inner}{name}={pretty(each, inner)},\n" for name, each in said.items())
    return f"{type(value).__qualname__}(\n{fields}{indent})"
