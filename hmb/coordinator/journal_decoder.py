"""The records of the coordinators' journals as JSON, in the words of Kafka's DumpLogSegments.

Those of `__consumer_offsets` as by its --offsets-decoder, those of `__transaction_state` by --transaction-log-decoder::

    key: {"type":"1","data":{"group":"g","topic":"t","partition":0}} payload: {"version":"4","data":{"offset":5,...}}

Kafka makes its JSON from the definitions: names in camelCase, in their order, what a version lacks is left out, and so
is a tagged field at its default. Bytes are base64. Where a classic group is one of consumers, the bytes that its
members told each other are shown as what they are.
"""

from __future__ import annotations

import base64
from typing import Any
from uuid import UUID

from hmb.coordinator.group_records import (
    KEYS,
    GroupMetadataValue,
    Key,
    Keys,
    UnknownRecordType,
    Value,
    decode_key,
    decode_value,
)
from hmb.coordinator.transactions.records import KEYS as TRANSACTION_KEYS
from hmb.protocol.consumer_protocol import (
    CONSUMER,
    ConsumerProtocol,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from hmb.protocol.errors import ProtocolError
from hmb.protocol.schema import Struct, version_range
from hmb.records import Record
from hmb.storage.dump.entries import Decoded
from hmb.storage.state.checkpoints import encode_uuid

IN_CONSUMER_GROUPS: dict[str, type[ConsumerProtocol]] = {
    "subscription": ConsumerProtocolSubscription,
    "assignment": ConsumerProtocolAssignment,
}


def decode_offsets(record: Record) -> Decoded:
    """A record of `__consumer_offsets`."""
    return _decode(record, KEYS)


def decode_transactions(record: Record) -> Decoded:
    """A record of `__transaction_state`."""
    return _decode(record, TRANSACTION_KEYS)


def _decode(record: Record, keys: Keys) -> Decoded:
    """A record's key and value; where they cannot be read, what Kafka says to that."""
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
                    told, read_as = protocol.parse(getattr(member, name))
                except ProtocolError:
                    continue  # the bytes as they are
                shown[name] = as_json(told, read_as)
    return {"version": str(version), "data": fields}


def as_json(struct: Struct, version: int) -> dict[str, Any]:
    """A struct in one version, as Kafka's converters write it."""
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
