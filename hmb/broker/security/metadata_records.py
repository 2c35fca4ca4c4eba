"""The records that store users, ACLs and quotas, in the format of Kafka's topic `__cluster_metadata`.

The value of a record begins with three unsigned varints. They tell the reader which class of this module
describes the bytes that follow:
    frame version (1)   record type   version   the fields of a class in this module

Kafka appends a record for each change. A record of type 22 removes a credential, and a record of type 19
removes an ACL. A quota record removes the quota if its field `remove` is true. HMB instead replaces its whole
file `security.checkpoint` after each change, so it needs no records that remove something.

Source: KIP-546, KIP-631, KIP-801 and KIP-900. The names of the records and of their fields come from the JSON
definitions in the jar of kafka-metadata 4.3.0.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.errors import ProtocolError
from hmb.protocol.primitives import MALFORMED, UVARINT, Output
from hmb.protocol.schema import Struct

FRAME_VERSION = 1


class MetadataRecord(Struct):
    """The value of a record in Kafka's metadata topic."""

    record_type: ClassVar[int]

    def __init_subclass__(cls, record_type: int) -> None:
        super().__init_subclass__(versions="0", flexible="0+")
        cls.record_type = record_type


class UserScramCredentialRecord(MetadataRecord, record_type=11):
    """The credential of one user for one SCRAM mechanism (hmb/security/scram.py). `repr` shows no key."""

    name:       str   = t.string()
    mechanism:  int   = t.int8()
    salt:       bytes = t.bytestring()
    stored_key: bytes = t.bytestring()
    server_key: bytes = t.bytestring()
    iterations: int   = t.int32()

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}(name={self.name!r}, mechanism={self.mechanism}, [hidden])"


class AccessControlEntryRecord(MetadataRecord, record_type=18):
    """One access control entry (ACL): it allows or forbids a principal to perform an operation on resources."""

    id:              UUID = t.uuid()
    resource_type:   int  = t.int8()
    resource_name:   str  = t.string()
    pattern_type:    int  = t.int8()
    principal:       str  = t.string()
    host:            str  = t.string()
    operation:       int  = t.int8()
    permission_type: int  = t.int8()


class ClientQuotaRecord(MetadataRecord, record_type=14):
    """One quota of an entity, for example `producer_byte_rate` of the user alice."""

    class EntityData(Struct):
        """One part of an entity: a type and a name, for example "user" and "alice".

        An entity has one or two parts. Its quota applies to the clients that match all its parts. If the name of a part
        is null, the quota is the default for all names of this type.
        """

        entity_type: str        = t.string()
        entity_name: str | None = t.string(nullable="0+")

    entity: list[EntityData] = t.array(EntityData)
    key:    str              = t.string()
    value:  float            = t.float64()
    remove: bool             = t.boolean()


class DelegationTokenRecord(MetadataRecord, record_type=10):
    """One delegation token (tokens/delegation.py). Principals have the form `User:alice`, and times are in ms."""

    owner:                str       = t.string()
    requester:            str       = t.string()
    renewers:             list[str] = t.array(t.string)
    issue_timestamp:      int       = t.int64()
    max_timestamp:        int       = t.int64()
    expiration_timestamp: int       = t.int64()
    token_id:             str       = t.string()


RECORDS: dict[int, type[MetadataRecord]] = {
    each.record_type: each
    for each in (UserScramCredentialRecord, AccessControlEntryRecord, ClientQuotaRecord, DelegationTokenRecord)
}


def encode_record(record: MetadataRecord) -> bytes:
    """Encode a record as the bytes of its value."""
    out = Output()
    for number in (FRAME_VERSION, record.record_type, 0):
        UVARINT.encode(out, number)
    record.compile(0).encode(out, record)
    return b"".join(bytes(part) for part in out.parts() if isinstance(part, (bytes, bytearray, memoryview)))


def decode_record(value: bytes) -> MetadataRecord:
    """Return the record in the value. Raises ProtocolError for malformed bytes and unknown types of records."""
    buffer, position, numbers = memoryview(value), 0, []
    try:
        for _ in range(3):
            number, position = UVARINT.decode(buffer, position)
            numbers.append(number)
    except MALFORMED as error:
        raise ProtocolError("the beginning of a metadata record is malformed") from error
    frame, record_type, version = numbers
    if frame != FRAME_VERSION or version != 0 or record_type not in RECORDS:
        raise ProtocolError(f"a metadata record of the type {record_type}, version {version}, is unknown")
    return RECORDS[record_type].decode(buffer, 0, position)
