"""Shows the records of the coordinators' journals as JSON, in the format of Kafka's tool DumpLogSegments.

The command `hmb dump-log` calls `decode_offsets` for --offsets-decoder, `decode_transactions` for
--transaction-log-decoder, and `decode_share_state` for --share-group-state-decoder. The command prints a committed
offset like this:
    key: {"type":"1","data":{"group":"g","topic":"t","partition":0}} payload: {"version":"4","data":{"offset":5,...}}

The printed JSON contains the fields of a record in the order of Kafka's definition, with names in camelCase. The JSON
omits fields that the version of the record does not have, and tagged fields with their default value. Bytes appear as
base64.

A classic group stores the subscription and the assignment of each member as bytes. The format of these bytes depends
on the protocol type of the group. The decoder knows only the format of the type "consumer", and shows its fields.
For all other types, and for bytes that it cannot decode, the decoder shows the bytes as base64.
"""

from __future__ import annotations

import base64
from typing import Any
from uuid import UUID

from hmb.coordinator.group_keys import OFFSETS_KEYS
from hmb.coordinator.journal.records import (
    GroupMetadataValue,
    Key,
    Keys,
    UnknownRecordType,
    Value,
    decode_key,
    decode_value,
)
from hmb.coordinator.share.state_records import STATE_KEYS
from hmb.coordinator.transactions.records import KEYS as TRANSACTION_KEYS
from hmb.protocol.consumer_protocol import (
    CONSUMER,
    ConsumerProtocol,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from hmb.protocol.errors import ProtocolError
from hmb.protocol.fields import version_range
from hmb.protocol.schema import Struct
from hmb.records import Record
from hmb.storage.dump.entries import Decoded
from hmb.uuids import encode_uuid

IN_CONSUMER_GROUPS: dict[str, type[ConsumerProtocol]] = {
    "subscription": ConsumerProtocolSubscription,
    "assignment": ConsumerProtocolAssignment,
}


def decode_offsets(record: Record) -> Decoded:
    """Return the key and the value of a record of `__consumer_offsets` as JSON."""
    return _decode(record, OFFSETS_KEYS)


def decode_transactions(record: Record) -> Decoded:
    """Return the key and the value of a record of `__transaction_state` as JSON."""
    return _decode(record, TRANSACTION_KEYS)


def decode_share_state(record: Record) -> Decoded:
    """Return the key and the value of a record of `__share_group_state` as JSON."""
    return _decode(record, STATE_KEYS)


def _decode(record: Record, keys: Keys) -> Decoded:
    """Return a record's key and value as JSON, or an error message like those of Kafka's DumpLogSegments."""
    if record.key is None:
        return Decoded(f"Error at offset {record.offset}, skipping. It has no key.", None)
    try:
        key = decode_key(record.key, keys)
        value = "<DELETE>" if record.value is None else _value(key, record.value)
    except UnknownRecordType as error:
        return Decoded(f"Unknown record type {error.record_type} at offset {record.offset}, skipping.", None)
    except ProtocolError as error:
        return Decoded(f"Error at offset {record.offset}, skipping. {error}", None)
    return Decoded({"type": str(key.record_type), "data": as_json(key, 0)}, value)


def _value(key: Key, data: bytes) -> dict[str, Any]:
    value: Value = decode_value(key, data)
    version = int.from_bytes(data[:2], "big")
    fields = as_json(value, version)
    if isinstance(value, GroupMetadataValue) and value.protocol_type == CONSUMER:
        for member, shown in zip(value.members, fields["members"], strict=True):
            for name, protocol in IN_CONSUMER_GROUPS.items():
                try:
                    parsed, read_as = protocol.parse(getattr(member, name))
                except ProtocolError:
                    continue  # These bytes cannot be parsed, so the JSON contains them as base64.
                shown[name] = as_json(parsed, read_as)
    return {"version": str(version), "data": fields}


def as_json(struct: Struct, version: int) -> dict[str, Any]:
    """Return the fields that a struct has in `version`, by name, in the format of Kafka's JSON."""
    return {
        _camel_case(name): _json(getattr(struct, name), version)
        for name, field in struct.fields.items()
        if version in version_range(field.versions)
        and not (field.tag is not None and getattr(struct, name) == field.default_value())
    }


def _json(value: Any, version: int) -> Any:
    if isinstance(value, Struct):
        return as_json(value, version)
    if isinstance(value, list):
        return [_json(each, version) for each in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return encode_uuid(value) if isinstance(value, UUID) else value


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
