"""Declares records of `__consumer_offsets`, the topic that keeps groups and committed offsets across restarts.

A coordinator keeps its groups in memory and writes every change to the compacted topic `__consumer_offsets`.
The key of a record identifies an object, for example a group, and the value contains its new state. Only the
newest record of each key is valid, so compaction can delete the older records of this key. A null value (a
tombstone) deletes the object. Each key and each value begins with an int16. This number determines which fields
follow:
    key    int16 record type (`Key.record_type`)   the fields of one of the `...Key` classes, always version 0
    value  int16 version                           the fields of the `...Value` class of the key

The journal `__consumer_offsets` contains records of these types:
    type      object                    key -> value
    0 and 1   committed offset          group, topic, partition -> offset, leader epoch, metadata, times
    2         classic group             group -> generation, protocol, leader, members with assignments
    3, 4, 6   KIP-848 group             group -> group epoch, topics, assignment epoch
    5, 7, 8   KIP-848 group member      group, member -> subscription, target assignment, current assignment
    16        regular expression        group, expression -> topics that match

For example, group "readers" commits offset 42 of weather-0. The coordinator stores the commit as a record. The
key contains record type 1, "readers", "weather" and 0. The value contains version 4, offset 42, the leader
epoch, the metadata and the time of the commit.

This module does not declare all record types of `__consumer_offsets`. The packages `share` and `streams` declare the
records of share groups (KIP-932) and of streams groups (KIP-1071). If a record has an unknown type, `decode_key` raises
`UnknownRecordType`, and the reader of the log skips the record.

HMB normally writes a value in the version that Kafka 4.3 writes. Each `...Value` class stores this version in
the class variable `written`. HMB and Kafka 4.3 can both read all versions that the class declares (`versions`).

Source: KIP-915, KIP-848; the JSON definitions in the jar of kafka-group-coordinator 4.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias
from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.errors import ProtocolError
from hmb.protocol.primitives import INT16, Output
from hmb.protocol.schema import Struct

KeyAndValue: TypeAlias = tuple[bytes, bytes | None]  # a record of the journal; a tombstone has the value None


class UnknownRecordType(ProtocolError):
    """The error for a key whose record type is unknown to this broker. The reader of the log skips the record."""

    def __init__(self, record_type: int) -> None:
        super().__init__(f"record type {record_type} is unknown")
        self.record_type = record_type


class Value(Struct):
    """The value of a record in `__consumer_offsets`."""

    written: ClassVar[int]  # the version in which new records are written

    def __init_subclass__(cls, versions: str = "0", flexible: str = "none", written: int = 0) -> None:
        super().__init_subclass__(versions, flexible)
        cls.written = written


class Key(Struct):
    """The key of a record. The layout of keys never changes, because compaction compares the bytes of keys."""

    record_type: ClassVar[int]
    value: ClassVar[type[Value]]

    def __init_subclass__(cls, record_type: int, value: type[Value]) -> None:
        super().__init_subclass__(versions="0")
        cls.record_type, cls.value = record_type, value


# Committed offsets


class LegacyOffsetCommitValue(Value):
    """A committed offset in the format of Kafka 0.8.2."""

    offset:           int = t.int64()
    metadata:         str = t.string()
    commit_timestamp: int = t.int64()


class LegacyOffsetCommitKey(Key, record_type=0, value=LegacyOffsetCommitValue):
    """The key of a committed offset in the format of Kafka 0.8.2."""

    group:     str = t.string()
    topic:     str = t.string()
    partition: int = t.int32()


class OffsetCommitValue(Value, versions="0-4", flexible="4+", written=4):
    """A committed offset.

    Only version 1 contains the time at which the offset expires. The coordinator writes version 1 if the client has set
    a retention time in its commit. Version 3 adds the leader epoch, and version 4 adds the topic id.
    """

    offset:           int  = t.int64()
    leader_epoch:     int  = t.int32("3+", default=-1, ignorable=True)
    metadata:         str  = t.string()
    commit_timestamp: int  = t.int64()
    expire_timestamp: int  = t.int64("1", default=-1, ignorable=True)
    topic_id:         UUID = t.uuid("4+", tag=0, ignorable=True)


class OffsetCommitKey(Key, record_type=1, value=OffsetCommitValue):
    """The key of the offset that one group committed for one partition."""

    group:     str = t.string()
    topic:     str = t.string()
    partition: int = t.int32()


# Classic groups


class GroupMetadataValue(Value, versions="0-4", flexible="4+", written=3):
    """A classic group with its members.

    Version 1 adds the rebalance timeout, version 2 adds the time at which the state last changed, and version 3 adds
    the instance ids of static members. Version 4 uses the flexible encoding (KIP-482).
    """

    class MemberMetadata(Struct):
        member_id:         str        = t.string()
        group_instance_id: str | None = t.string("3+", nullable="3+", default=None, ignorable=True)
        client_id:         str        = t.string()
        client_host:       str        = t.string()
        rebalance_timeout: int        = t.int32("1+", default=-1, ignorable=True)
        session_timeout:   int        = t.int32()
        subscription:      bytes      = t.bytestring()
        assignment:        bytes      = t.bytestring()

    protocol_type:           str                  = t.string()
    generation:              int                  = t.int32()
    protocol:                str | None           = t.string(nullable="0+")
    leader:                  str | None           = t.string(nullable="0+")
    current_state_timestamp: int                  = t.int64("2+", default=-1, ignorable=True)
    members:                 list[MemberMetadata] = t.array(MemberMetadata)


class GroupMetadataKey(Key, record_type=2, value=GroupMetadataValue):
    """The key of the record of one classic group."""

    group: str = t.string()


# Groups that use the KIP-848 protocol


class ConsumerGroupMetadataValue(Value, flexible="0+"):
    """The group epoch, and a hash of the topics to which the group subscribes.

    If the hash changes, the coordinator increases the group epoch (KIP-1101).
    """

    epoch:         int = t.int32()
    metadata_hash: int = t.int64(tag=0)


class ConsumerGroupMetadataKey(Key, record_type=3, value=ConsumerGroupMetadataValue):
    """The key of the record that contains the epoch of one group."""

    group_id: str = t.string()


class ConsumerGroupPartitionMetadataValue(Value, flexible="0+"):
    """The topics to which a group subscribes. Only Kafka 4.0 writes this record; Kafka 4.1 stores a hash instead."""

    class TopicMetadata(Struct):
        class PartitionMetadata(Struct):
            partition: int       = t.int32()
            racks:     list[str] = t.array(t.string)

        topic_id:           UUID                    = t.uuid()
        topic_name:         str                     = t.string()
        num_partitions:     int                     = t.int32()
        partition_metadata: list[PartitionMetadata] = t.array(PartitionMetadata)

    topics: list[TopicMetadata] = t.array(TopicMetadata)


class ConsumerGroupPartitionMetadataKey(Key, record_type=4, value=ConsumerGroupPartitionMetadataValue):
    """The key of the record that contains the topics to which one group subscribes."""

    group_id: str = t.string()


class ConsumerGroupMemberMetadataValue(Value, flexible="0+"):
    """One member of a KIP-848 group, with the member's subscription.

    If the member uses the KIP-848 protocol, the record stores null in the tagged field `classic_member_metadata`.
    Without this field, a reader would assume the default, an empty struct.
    """

    class ClassicMemberMetadata(Struct):
        class ClassicProtocol(Struct):
            name:     str   = t.string()
            metadata: bytes = t.bytestring()

        session_timeout_ms:  int                   = t.int32()
        supported_protocols: list[ClassicProtocol] = t.array(ClassicProtocol)

    instance_id:             str | None                   = t.string(nullable="0+")
    rack_id:                 str | None                   = t.string(nullable="0+")
    client_id:               str                          = t.string()
    client_host:             str                          = t.string()
    subscribed_topic_names:  list[str]                    = t.array(t.string)
    subscribed_topic_regex:  str | None                   = t.string(nullable="0+")
    rebalance_timeout_ms:    int                          = t.int32(default=-1)
    server_assignor:         str | None                   = t.string(nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = t.struct(ClassicMemberMetadata, nullable="0+", tag=0)


class ConsumerGroupMemberMetadataKey(Key, record_type=5, value=ConsumerGroupMemberMetadataValue):
    """The key of the record that contains one member and its subscription."""

    group_id:  str = t.string()
    member_id: str = t.string()


class ConsumerGroupTargetAssignmentMetadataValue(Value, flexible="0+"):
    """The group epoch for which the coordinator computed the target assignment.

    `assignment_timestamp` is the time (ms) of this computation (KIP-1263).
    """

    assignment_epoch:     int = t.int32()
    assignment_timestamp: int = t.int64(tag=0, ignorable=True)


class ConsumerGroupTargetAssignmentMetadataKey(Key, record_type=6, value=ConsumerGroupTargetAssignmentMetadataValue):
    """The key of the record that contains the assignment epoch of one group."""

    group_id: str = t.string()


class ConsumerGroupTargetAssignmentMemberValue(Value, flexible="0+"):
    """The target assignment of one member: the partitions that the member will own in the end."""

    class TopicPartition(Struct):
        topic_id:   UUID      = t.uuid()
        partitions: list[int] = t.array(t.int32)

    topic_partitions: list[TopicPartition] = t.array(TopicPartition)


class ConsumerGroupTargetAssignmentMemberKey(Key, record_type=7, value=ConsumerGroupTargetAssignmentMemberValue):
    """The key of the record that contains the target assignment of one member."""

    group_id:  str = t.string()
    member_id: str = t.string()


class ConsumerGroupCurrentMemberAssignmentValue(Value, flexible="0+"):
    """The current assignment of one member: the partitions that it owns and the partitions that it must give up."""

    class TopicPartitions(Struct):
        topic_id:          UUID             = t.uuid()
        partitions:        list[int]        = t.array(t.int32)
        assignment_epochs: list[int] | None = t.array(t.int32, nullable="0+", tag=0)

    member_epoch:                  int                   = t.int32()
    previous_member_epoch:         int                   = t.int32()
    state:                         int                   = t.int8()
    assigned_partitions:           list[TopicPartitions] = t.array(TopicPartitions)
    partitions_pending_revocation: list[TopicPartitions] = t.array(TopicPartitions)


class ConsumerGroupCurrentMemberAssignmentKey(Key, record_type=8, value=ConsumerGroupCurrentMemberAssignmentValue):
    """The key of the record that contains the current assignment of one member."""

    group_id:  str = t.string()
    member_id: str = t.string()


class ConsumerGroupRegularExpressionValue(Value, flexible="0+"):
    """The topics whose names match a regular expression.

    `timestamp` is the time (ms) at which the coordinator searched for matching topics. `version` is the version of
    the list of topics at that time (`ClusterTopics.version`).
    """

    topics:    list[str] = t.array(t.string)
    version:   int       = t.int64()
    timestamp: int       = t.int64()


class ConsumerGroupRegularExpressionKey(Key, record_type=16, value=ConsumerGroupRegularExpressionValue):
    """The key of a regular expression to which at least one member of a group subscribes."""

    group_id:           str = t.string()
    regular_expression: str = t.string()


Keys: TypeAlias = Mapping[int, type[Key]]  # record type -> the class of the key
KEYS: Keys = {key.record_type: key for key in Key.__subclasses__()}


def encode_key(key: Key) -> bytes:
    """Return the bytes of a key: first the record type, then the fields."""
    return _encode(key.record_type, key, 0)


def encode_value(value: Value, version: int | None = None) -> bytes:
    """Return the bytes of a value: first the version, then the fields.

    If `version` is None, use the version that Kafka 4.3 writes.
    """
    version = value.written if version is None else version
    return _encode(version, value, version)


def decode_key(data: bytes | memoryview, keys: Keys = KEYS) -> Key:
    """Decode the key of a record. Raises UnknownRecordType, or ProtocolError if the bytes are not a key."""
    record_type, position = _first_two(data)
    if record_type not in keys:
        raise UnknownRecordType(record_type)
    return keys[record_type].decode(data, 0, position)


def decode_value(key: Key, data: bytes | memoryview) -> Any:
    """Decode the value of a record. The result is an object of the class `key.value`. Raises ProtocolError."""
    version, position = _first_two(data)
    if version not in key.value.versions:
        raise ProtocolError(f"{key.value.__name__} has no version {version}")
    return key.value.decode(data, version, position)


def _encode(number: int, struct: Struct, version: int) -> bytes:
    out = Output()
    INT16.encode(out, number)
    struct.compile(version).encode(out, struct)
    return bytes(out)


def _first_two(data: bytes | memoryview) -> tuple[int, int]:
    if len(data) < 2:
        raise ProtocolError(f"the key or value of a coordinator's record has at least 2 bytes, not {len(data)}")
    number, position = INT16.decode(memoryview(data), 0)
    return int(number), position
