"""Control records: the COMMIT and ABORT markers that end a transaction in a log (KIP-98).

A producer writes the records of a transaction to the logs before the transaction commits or aborts. When the
transaction ends, the broker appends a control batch to each partition of the transaction. The control batch contains
the producer id of the transaction, and one record:
    key    int16 version = 0   int16 type: 0 abort, 1 commit
    value  int16 version = 0   int32 coordinator epoch

For example, the COMMIT marker of a coordinator with epoch 3 has the key `00 00 00 01` and the value `00 00 00 00 00
03`. Control records of the types 2 to 6 occur only in the metadata log of Kafka's controllers (KRaft).

A marker gets an offset like any other record. For example, producer 7 has written the offsets 100 to 109 in a
transaction, and the log ends at 110. The marker ABORT gets the offset 110. The last stable offset moves from 100 to
111, and the transaction index gets an entry for the offsets 100 to 110.

A consumer does not return control records to its application. But each control record has an offset, so the application
sees gaps in the offsets.
"""

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from hmb.protocol.enums import NO_LEADER_EPOCH
from hmb.protocol.errors import invalid_record
from hmb.records.batch import encode_batch
from hmb.records.record import Record

MARKER_KEY = Struct(">hh")
MARKER_VALUE = Struct(">hi")
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


MARKERS = (ControlType.ABORT, ControlType.COMMIT)  # the types of the records that end a transaction


class EndTransactionMarker(NamedTuple):
    """The fields of a COMMIT or ABORT marker."""

    control_type: ControlType
    coordinator_epoch: int


def encode_marker(
    marker: EndTransactionMarker,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    *,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """Return a control batch that contains a COMMIT or ABORT marker. `timestamp` is in ms since 1970."""
    key = MARKER_KEY.pack(VERSION, marker.control_type)
    value = MARKER_VALUE.pack(VERSION, marker.coordinator_epoch)
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
    """Return the type of a control record. Return UNKNOWN if this version of HMB does not know the type.

    Raises INVALID_RECORD if the record's key is too short.
    """
    if record.key is None or len(record.key) < MARKER_KEY.size:
        raise invalid_record("a control record's key is too short")
    _, number = MARKER_KEY.unpack_from(record.key)
    try:
        return ControlType(number)
    except ValueError:
        return ControlType.UNKNOWN


def decode_marker(record: Record) -> EndTransactionMarker:
    """Decode a control record of the type ABORT or COMMIT. Raises INVALID_RECORD for all other records."""
    kind = control_type(record)
    if kind not in MARKERS or record.value is None or len(record.value) < MARKER_VALUE.size:
        raise invalid_record(f"a control record of type {kind.name} does not end a transaction")
    _, coordinator_epoch = MARKER_VALUE.unpack_from(record.value)
    return EndTransactionMarker(kind, coordinator_epoch)
