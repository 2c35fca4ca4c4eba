"""Subscriptions and assignments: the bytes that consumers exchange through the group coordinator.

In a classic group, the members send data to each other through the coordinator, which does not decode the data. If
the protocol type of the group is "consumer", there are two kinds of data:
- A *subscription* contains the topics that a member wants to read. Each member sends its subscription in JoinGroup. The
  coordinator sends all subscriptions to one member, the leader of the group.
- An *assignment* contains the partitions that a member gets. The leader sends the assignments of all members in
  SyncGroup. The coordinator sends each member its own assignment.

Each subscription and each assignment begins with a version. All bytes after the version are encoded fields:
    int16   version
    ...     encoded fields

A new version of a subscription or an assignment only adds fields at the end. So a reader that supports versions 0 to 3
can also decode version 4: it decodes the fields of version 3, and ignores the bytes after them.

A subscription also contains user data: bytes for the *assignor*, the strategy that assigns the partitions to
the members. Each assignor has its own layout for these bytes. In the user data of the sticky assignor, a member
lists the partitions that it owned before the rebalance. There are two versions of this layout, but the bytes
contain no version number. A reader therefore tries to decode the newer layout first, and then the older layout.

The user data of the cooperative assignor contains only the member's generation (an int32). From version 2 on, a
subscription has a separate field for the generation. A reader therefore needs this user data only in versions 0
and 1.

Source: ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json, KIP-429 (owned partitions), KIP-792
(generation), KIP-881 (racks), KIP-54 and KIP-341 (user data of the sticky assignor).
"""

from __future__ import annotations

from typing import Self

from hmb.protocol import fields as t
from hmb.protocol.errors import ProtocolError
from hmb.protocol.primitives import INT16, Output
from hmb.protocol.schema import Struct

CONSUMER = "consumer"  # the protocol type of a group of consumers


class ConsumerProtocol(Struct):
    """A message of the consumer protocol. Its bytes begin with its version."""

    @classmethod
    def parse(cls, data: bytes | memoryview) -> tuple[Self, int]:
        """Return the message, and the version used to decode it. Raises ProtocolError for malformed data."""
        if len(data) < 2:
            raise ProtocolError(f"a {cls.__name__} has at least 2 bytes, not {len(data)}")
        version, position = INT16.decode(memoryview(data), 0)
        if version < 0:
            raise ProtocolError(f"{cls.__name__} has no version {version}")
        version = min(version, cls.versions[-1])
        return cls.decode_prefix(data, version, position)[0], version

    def versioned(self, version: int) -> bytes:
        """Return the version as two bytes, followed by the encoded message."""
        out = Output()
        INT16.encode(out, version)
        self.compile(version).encode(out, self)
        return bytes(out)


class ConsumerProtocolSubscription(ConsumerProtocol, versions="0-3"):
    """The topics that a member subscribes to.

    Version 1 adds the partitions that the member owns. Version 2 adds the member's generation, and version 3 its rack.
    """

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
    """The user data of the sticky assignor: the partitions that the member owned before the rebalance.

    Version 1 adds the generation in which the member owned these partitions.
    """

    class TopicPartition(Struct):
        topic:      str       = t.string()
        partitions: list[int] = t.array(t.int32)

    previous_assignment: list[TopicPartition] = t.array(TopicPartition)
    generation:          int                  = t.int32("1+", default=-1, ignorable=True)


class CooperativeUserData(Struct, versions="0"):
    """The user data of the cooperative assignor: the generation in which the member received its partitions."""

    generation: int = t.int32()
