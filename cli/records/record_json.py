"""Convert a record to one line of JSON, and back to the same record, byte for byte.

If a key or a value is UTF-8 text, it becomes a string. Other bytes become base64, and the name of the field then ends
with `_base64`. In this example, the key is text, and the value is the byte ff:
    {"topic": "t", "partition": 0, "offset": 7, "timestamp": 1262332800000, "timestamp_type": "CreateTime",
     "key": "Seattle", "value_base64": "/w==", "headers": [{"key": "source", "value": "noaa"}]}

A null key, a null record value and a null header value become `null` in the line of JSON.

`hmb produce --json` reads five fields of a line: key, value, headers, timestamp and partition. The command
sends the record to the partition in the line. If a user copies a topic in this way, each record has the same
partition in the copy as in the original. If a line contains no partition, the key of the record selects the
partition. With the option `-p`, the command sends all records to the partition that the user has set, and
ignores the partitions in the lines.

`hmb produce --json` ignores the topic and the offset in the lines: the user names the topic on the command line, and
the broker assigns new offsets.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from hmb.protocol.enums import INT64_MAX
from hmb.records import NO_TIMESTAMP, TimestampType
from hmb.storage.dump.entries import content_as_json

from ..shared.parameters import did_you_mean
from .line_formats import HeaderPair, LineRecord, Parse

if TYPE_CHECKING:
    from hmb.client.consuming.consumer import ConsumerRecord

ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode  # json.dumps creates an encoder each time.
LABELS = {kind: kind.label for kind in TimestampType}
BOM = "\ufeff".encode()

HEADER_FIELDS = ("key", "value", "value_base64")
FIELDS = ("topic", "partition", "offset", "timestamp", "timestamp_type", "headers", "key_base64", *HEADER_FIELDS)


def to_json(record: ConsumerRecord) -> str:
    """Return a record as one line of JSON, without the newline."""
    fields: dict[str, object] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": LABELS[record.timestamp_type],
        **content_as_json(record),
    }
    return ENCODE(fields)


def from_json(line: bytes) -> LineRecord:
    """Parse a line of JSON. Raises ValueError, which describes the first mistake in the line."""
    fields = _loads(line)
    if not isinstance(fields, dict):
        raise ValueError("not a JSON object")
    _check_names(fields, FIELDS)
    if "value" not in fields and "value_base64" not in fields:
        raise ValueError(
            'the object has neither "value" nor "value_base64"; for a record without a value, write "value": null'
        )
    headers = fields.get("headers") or []
    if not isinstance(headers, list) or not all(map(_is_header, headers)):
        raise ValueError('"headers" is not a list of {"key": ..., "value": ...}')
    timestamp = _get_int(fields, "timestamp", "milliseconds since 1970, or -1 for none")
    if timestamp is not None and not NO_TIMESTAMP <= timestamp < INT64_MAX:
        raise ValueError(f'"timestamp" is {timestamp}; it must be in ms since 1970, or -1 for no timestamp')
    if timestamp == NO_TIMESTAMP and fields.get("timestamp_type") != TimestampType.CREATE_TIME.label:
        timestamp = None  # -1: the original record has no timestamp, because its format is old.
    partition = _get_int(fields, "partition", "the number of a partition")
    pairs = tuple(_header(header) for header in headers)
    return LineRecord(_get(fields, "key"), _get(fields, "value"), pairs, timestamp, partition)


def json_line(key: bytes | None) -> Parse:
    """Return the function that parses one line of input for `hmb produce --json`.

    If the key in a line is missing or null, the record gets the argument `key` as its key. If `key` is None too,
    the record has no key.
    """

    def parse(line: bytes) -> LineRecord:
        record = from_json(line)
        return record._replace(key=key) if record.key is None else record

    return from_json if key is None else parse


def _loads(line: bytes) -> object:
    line = line.removeprefix(BOM)
    try:
        return json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 JSON: byte {error.start + 1} is 0x{line[error.start]:02x}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.pos + 1}") from None
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def _check_names(fields: Mapping[str, object], known: Collection[str]) -> None:
    for name in fields:
        if name not in known:
            raise ValueError(f"unknown field {json.dumps(name)}; {did_you_mean(name, known)}")


def _is_header(header: object) -> bool:
    return isinstance(header, dict) and isinstance(header.get("key"), str)


def _header(fields: Mapping[str, object]) -> HeaderPair:
    _check_names(fields, HEADER_FIELDS)
    name = str(fields["key"])
    _encode("key", name)  # Raises an error if the name cannot be encoded.
    return name, _get(fields, "value")


def _get_int(fields: Mapping[str, object], name: str, meaning: str) -> int | None:
    number = fields.get(name)
    if number is not None and type(number) is not int:  # In Python, a bool is an int.
        raise ValueError(f'"{name}" is {json.dumps(number)}, not {meaning}')
    return number


def _get(fields: Mapping[str, object], name: str) -> bytes | None:
    in_base64 = f"{name}_base64"
    if in_base64 not in fields:
        return _encode(name, fields.get(name))
    if name in fields:
        raise ValueError(f'"{name}" and "{in_base64}" cannot be combined')
    encoded = fields[in_base64]
    try:
        if isinstance(encoded, str):
            return base64.b64decode(encoded, validate=True)
    except ValueError:
        pass
    raise ValueError(f'"{in_base64}" is not in base64')


def _encode(name: str, text: object) -> bytes | None:
    if not isinstance(text, str | None):
        raise ValueError(f'"{name}" is {json.dumps(text)}, not a string or null')
    if text is None:
        return None
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        half = json.dumps(text[error.start])
        raise ValueError(f'"{name}" contains an incomplete character: {half} is one half of a surrogate pair') from None
