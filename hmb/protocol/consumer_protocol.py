"""Subscriptions and assignments: the bytes that consumers exchange through the group coordinator.

The coordinator of a classic group carries bytes that only its clients decode. In a group with the protocol type
"consumer" these bytes are of two kinds. A member sends its *subscription* in JoinGroup, and the coordinator passes it
to the leader. The leader sends the *assignments* in SyncGroup, and each member receives its own. Subscriptions and
assignments begin with a version::

    int16 version   fields

A newer version of these messages only adds fields at the end. So a reader decodes a version that is too new as the
newest version that the reader supports.

An assignor defines the user data of its subscriptions. The sticky assignor sends the partitions that the member owned
before the rebalance. The sticky assignor's bytes have no version, so a reader tries the newer layout first, and then
the older one. The cooperative assignor sends only the generation (an int32), for subscriptions before version 2.

Source: ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json, KIP-429 (owned partitions), KIP-792
(generation), KIP-881 (racks), KIP-54 and KIP-341 (user data of the sticky assignor).
"""

from __future__ import annotations

from typing import Self

from hmb.protocol import schema as t
from hmb.protocol.errors import ProtocolError
from hmb.protocol.primitives import INT16, Output
from hmb.protocol.schema import Struct

CONSUMER = "consumer"  # the protocol type of consumer groups


class ConsumerProtocol(Struct):
    """A message whose bytes begin with its version."""

    @classmethod
    def parse(cls, data: bytes | memoryview) -> tuple[Self, int]:
        """Return the decoded message and the version of its layout. Raises ProtocolError."""
        if len(data) < 2:
            raise ProtocolError(f"{len(data)} bytes are too few for a {cls.__name__}")
        version, position = INT16.decode(memoryview(data), 0)
        if version < 0:
            raise ProtocolError(f"{cls.__name__} has no version {version}")
        version = min(version, cls.versions[-1])
        return cls.decode_prefix(data, version, position)[0], version

    def versioned(self, version: int) -> bytes:
        """Return the bytes of the version, followed by the encoded message."""
        out = Output()
        INT16.encode(out, version)
        self.compile(version).encode(out, self)
        return bytes(out)


class ConsumerProtocolSubscription(ConsumerProtocol, versions="0-3"):
    """The topics that a member subscribes to. v1 adds the partitions it owns, v2 its generation, and v3 its rack."""

    class TopicPartition(Struct):
        topic:      str       = t.string("1+")
        partitions: list[int] = t.array(t.int32, "1+")

    topics:           list[str]            = t.array(t.string)
    user_data:        bytes | None         = t.bytestring(nullable="0+", default=None)
    owned_partitions: list[TopicPartition] = t.array(TopicPartition, "1+", ignorable=True)
    generation_id:    int                  = t.int32("2+", default=-1, ignorable=True)
    rack_id:          str | None           = t.string("3+", nullable="3+", default=None, ignorable=True)


class ConsumerProtocolAssignment(ConsumerProtocol, versions="0-3"):
    """The partitions that the leader assigned to a member. Versions 0 to 3 have the same fields."""

    class TopicPartition(Struct):
        topic:      str       = t.string()
        partitions: list[int] = t.array(t.int32)

    assigned_partitions: list[TopicPartition] = t.array(TopicPartition)
    user_data:           bytes | None         = t.bytestring(nullable="0+", default=None)


class StickyUserData(Struct, versions="0-1"):
    """The partitions that a member of the sticky assignor owned. v1 adds their generation."""

    class TopicPartition(Struct):
        topic:      str       = t.string()
        partitions: list[int] = t.array(t.int32)

    previous_assignment: list[TopicPartition] = t.array(TopicPartition)
    generation:          int                  = t.int32("1+", default=-1, ignorable=True)


class CooperativeUserData(Struct, versions="0"):
    """The generation in which a member of the cooperative assignor received its partitions."""

    generation: int = t.int32()
