"""Compares `hmb dump-log` with Kafka's tool, line by line, for all types and versions of coordinator records."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from hmb.coordinator.journal.records import (
    KEYS,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    encode_key,
    encode_value,
)
from hmb.coordinator.journal_decoder import decode_offsets, decode_transactions
from hmb.coordinator.transactions.records import TransactionLogKey, TransactionLogValue
from hmb.protocol.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from hmb.protocol.fields import Field, version_range
from hmb.protocol.schema import Struct
from hmb.records import ControlType, EndTransactionMarker, Record, encode_batch, encode_marker
from hmb.storage.dump.entries import DumpOptions
from tests.conformance.data_dir.test_dump_log import kafka_s_lines, our_lines

pytestmark = pytest.mark.external

SAMPLES: dict[str, list[Any]] = {
    "string": ["", "t", 'ü€😀 "\\/\n\t\x01\x1f\x7f\u2028'],
    "bytes": [b"", b"\0\xff", b"some bytes"],
    "uuid": [UUID(int=0), UUID(int=2**128 - 1), UUID(int=12345)],
    "int8": [0, -1, 127],
    "int16": [0, -1, 32767],
    "int32": [0, -1, 2**31 - 1],
    "int64": [0, -1, -(2**63)],
}


def sample(struct: type[Struct], version: int, number: int) -> Any:
    """Return a struct with sample values. `number` selects the values. With `number` 3, nullable fields are null."""
    present = {name: field for name, field in struct.fields.items() if version in version_range(field.versions)}
    return struct(**{name: value(field, version, number) for name, field in present.items()})


def value(field: Field, version: int, number: int) -> Any:
    if number == 3 and version in version_range(field.nullable):
        return None
    if field.struct is not None:
        return sample(field.struct, version, number)
    if field.item is not None:
        return [value(field.item, version, number)] * (number % 3)
    return SAMPLES[field.kind][number % 3]


def every_record() -> list[Record]:
    return [
        Record(
            timestamp=1000,
            key=encode_key(sample(key, 0, number)),
            value=encode_value(sample(key.value, version, number), version),
        )
        for key in KEYS.values()
        for version in key.value.versions
        for number in range(4)
    ]


def consumer_groups() -> list[Record]:
    """Return records of classic groups. Together, their members have subscriptions of all versions.

    Each group has two members. The bytes of the second member's subscription and assignment are invalid.
    """
    found = []
    broken = GroupMetadataValue.MemberMetadata(subscription=b"\0", assignment=b"\0\0\0\0\0\5")
    for version in ConsumerProtocolSubscription.versions:
        for number in range(4):
            subscription = sample(ConsumerProtocolSubscription, version, number).versioned(version)
            assignment = sample(ConsumerProtocolAssignment, version, number).versioned(version)
            member = GroupMetadataValue.MemberMetadata(subscription=subscription, assignment=assignment)
            group = GroupMetadataValue(protocol_type="consumer", protocol="range", leader="m", members=[member, broken])
            found.append(Record(timestamp=1, key=encode_key(GroupMetadataKey(group="g")), value=encode_value(group)))
    return found


def test_every_transaction(kafka_43: Path, tmp_path: Path) -> None:
    key, value = TransactionLogKey, TransactionLogValue
    records = [
        Record(
            timestamp=1,
            key=encode_key(sample(key, 0, number)),
            value=encode_value(sample(value, version, number), version),
        )
        for version in value.versions
        for number in range(4)
    ]
    records.append(Record(timestamp=2, key=encode_key(key(transactional_id="gone"))))
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(encode_batch(records))
    ours = our_lines([log], DumpOptions(decode=decode_transactions))
    assert len(ours) == 2 + 1 + len(records)
    for one, other in zip_longest(ours, kafka_s_lines(kafka_43, [log], "--transaction-log-decoder")):
        assert one == other


def test_every_record(kafka_43: Path, tmp_path: Path) -> None:
    records = every_record() + consumer_groups()
    records.append(Record(timestamp=2, key=encode_key(OffsetCommitKey(group="g", topic="t"))))
    records.append(Record(timestamp=2, key=b"\0\x63unknown", value=b"\0\0"))
    marker = encode_marker(EndTransactionMarker(ControlType.COMMIT, 3), 5, 7, 1, base_offset=len(records))
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(encode_batch(records) + marker)
    ours = our_lines([log], DumpOptions(decode=decode_offsets))
    assert len(ours) == 2 + 1 + len(records) + 2, "the file; a batch with its records, one with its marker"
    for one, other in zip_longest(ours, kafka_s_lines(kafka_43, [log], "--offsets-decoder")):
        assert one == other
