"""What consumers tell each other through the group coordinator: what each wants to read, and what each is to read.

The classic group protocol carries bytes that only its clients understand.  In a group of protocol type "consumer" they
are these two: a member's subscription goes with its JoinGroup to the leader, its assignment comes with its SyncGroup.
Both begin with their version::

    int16 version   fields

Newer versions only add fields at the end, so a reader takes one that it does not know for the newest that it knows.

A subscription's user data is the assignor's own.  That of the sticky one tells what the member had before it gave it
up, without a version in front: a reader tries the newer layout, then the older.  The cooperative one's tells the
generation alone (an int32), for subscriptions before version 2.

Source: KIP-54, KIP-429 (owned partitions), KIP-792 (generation), KIP-881 (racks); ConsumerProtocolSubscription.json and
ConsumerProtocolAssignment.json; KIP-54 and KIP-341 (the sticky assignor's user data).
"""

from __future__ import annotations

from typing import Self

from hmb.protocol import schema as t
from hmb.protocol.errors import ProtocolError
from hmb.protocol.primitives import INT16, Output
from hmb.protocol.schema import Struct

CONSUMER = "consumer"  # the protocol type


class ConsumerProtocol(Struct):
    """A message behind its version."""

    @classmethod
    def parse(cls, data: bytes | memoryview) -> tuple[Self, int]:
        """The message behind its version, and the version in which it was read.  Raises ProtocolError."""
        if len(data) < 2:
            raise ProtocolError(f"{len(data)} bytes are too few for a {cls.__name__}")
        version, position = INT16.decode(memoryview(data), 0)
        if version < 0:
            raise ProtocolError(f"{cls.__name__} has no version {version}")
        version = min(version, cls.versions[-1])
        return cls.decode_prefix(data, version, position)[0], version

    def versioned(self, version: int) -> bytes:
        """The message behind its version."""
        out = Output()
        INT16.encode(out, version)
        self.compile(version).encode(out, self)
        return bytes(out)


class ConsumerProtocolSubscription(ConsumerProtocol, versions="0-3"):
    """What a member wants.  v1: what it owns; v2: since which generation; v3: where it runs."""

    class TopicPartition(Struct):
        topic:      str       = t.string("1+")
        partitions: list[int] = t.array(t.int32, "1+")

    topics:           list[str]            = t.array(t.string)
    user_data:        bytes | None         = t.bytestring(nullable="0+", default=None)
    owned_partitions: list[TopicPartition] = t.array(TopicPartition, "1+", ignorable=True)
    generation_id:    int                  = t.int32("2+", default=-1, ignorable=True)
    rack_id:          str | None           = t.string("3+", nullable="3+", default=None, ignorable=True)


class ConsumerProtocolAssignment(ConsumerProtocol, versions="0-3"):
    """What a member gets.  Its versions follow the subscription's; nothing was added."""

    class TopicPartition(Struct):
        topic:      str       = t.string()
        partitions: list[int] = t.array(t.int32)

    assigned_partitions: list[TopicPartition] = t.array(TopicPartition)
    user_data:           bytes | None         = t.bytestring(nullable="0+", default=None)


class StickyUserData(Struct, versions="0-1"):
    """What a member of the sticky assignor had.  v1: since which generation."""

    class TopicPartition(Struct):
        topic:      str       = t.string()
        partitions: list[int] = t.array(t.int32)

    previous_assignment: list[TopicPartition] = t.array(TopicPartition)
    generation:          int                  = t.int32("1+", default=-1, ignorable=True)


class CooperativeUserData(Struct, versions="0"):
    """The generation in which a member of the cooperative assignor was given what it owns."""

    generation: int = t.int32()
