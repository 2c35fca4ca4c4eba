"""Control records: the markers in the log that end a transaction (KIP-98).

A transaction's records are in the log before anybody knows whether it will commit.  At its end the broker appends one
control batch per partition, with the transaction's producer id, holding one record::

    key    int16 version = 0   int16 type: 0 abort, 1 commit
    value  int16 version = 0   int32 coordinator epoch

A consumer never hands them to its user, but they take up an offset.  Types 2 to 4 belong to KRaft's own log.
"""

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records.batch import encode_batch
from hmb.records.record import Record

_KEY = Struct(">hh")
_VALUE = Struct(">hi")
VERSION = 0


class ControlType(IntEnum):
    """What a control record says."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    UNKNOWN = -1


class EndTransactionMarker(NamedTuple):
    """The end of a transaction in one partition."""

    control_type: ControlType
    coordinator_epoch: int


def encode_marker(
    marker: EndTransactionMarker,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """The control batch with the marker."""
    key = _KEY.pack(VERSION, marker.control_type)
    value = _VALUE.pack(VERSION, marker.coordinator_epoch)
    return encode_batch(
        [Record(timestamp=timestamp, key=key, value=value)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        leader_epoch=leader_epoch,
    )


def control_type(record: Record) -> ControlType:
    """Of a record of a control batch; UNKNOWN for one that a newer broker has thought of."""
    if record.key is None or len(record.key) < _KEY.size:
        raise KafkaError(ErrorCode.INVALID_RECORD, "a control record's key is too short")
    _, number = _KEY.unpack_from(record.key)
    try:
        return ControlType(number)
    except ValueError:
        return ControlType.UNKNOWN


def decode_marker(record: Record) -> EndTransactionMarker:
    """The marker in a control record that is one (ABORT or COMMIT)."""
    kind = control_type(record)
    if kind not in (ControlType.ABORT, ControlType.COMMIT) or record.value is None or len(record.value) < _VALUE.size:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"not the end of a transaction: {kind.name}")
    _, coordinator_epoch = _VALUE.unpack_from(record.value)
    return EndTransactionMarker(kind, coordinator_epoch)
