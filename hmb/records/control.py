"""Control records: the markers in the log that end a transaction (KIP-98).

The records of a transaction are written to the log before the transaction commits or aborts. At its end, the broker
appends a control batch to each of its partitions. The control batch has the transaction's producer id and one record::

    key    int16 version = 0   int16 type: 0 abort, 1 commit
    value  int16 version = 0   int32 coordinator epoch

A consumer does not return control records to its application, but each of them has an offset. For example, the commit
of a transaction by coordinator epoch 3 has the key `00 00 00 01` and the value `00 00 00 00 00 03`. The types 2 to 6
occur only in the metadata log of KRaft.
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
    """The types of control records."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    UNKNOWN = -1


class EndTransactionMarker(NamedTuple):
    """The content of a marker that ends a transaction in one partition."""

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
    """Return a control batch that contains the marker. `timestamp` is in ms since 1970."""
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
    """Return the type of a record in a control batch, or UNKNOWN for a type of newer brokers.

    Raises INVALID_RECORD if the key is too short.
    """
    if record.key is None or len(record.key) < _KEY.size:
        raise KafkaError(ErrorCode.INVALID_RECORD, "a control record's key is too short")
    _, number = _KEY.unpack_from(record.key)
    try:
        return ControlType(number)
    except ValueError:
        return ControlType.UNKNOWN


def decode_marker(record: Record) -> EndTransactionMarker:
    """Return the marker in a control record of type ABORT or COMMIT. Raises INVALID_RECORD for other records."""
    kind = control_type(record)
    if kind not in (ControlType.ABORT, ControlType.COMMIT) or record.value is None or len(record.value) < _VALUE.size:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a control record of type {kind.name} does not end a transaction")
    _, coordinator_epoch = _VALUE.unpack_from(record.value)
    return EndTransactionMarker(kind, coordinator_epoch)
