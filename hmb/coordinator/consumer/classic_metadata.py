"""Data that a KIP-848 group stores only for members with the classic protocol.

In an online migration, the consumers of a group change from the classic protocol to KIP-848, or back, one
after the other. Meanwhile, some members of the KIP-848 group use the classic protocol
(hmb/coordinator/migration).

If a member uses the classic protocol, its journal record also contains the session timeout and protocols.

A member with the classic protocol sends a list of protocols. Each protocol is a pair: the name of an
assignor, and metadata. The coordinator reads the member's topics from the metadata.

The coordinator may have to convert the KIP-848 group to a classic group (a downgrade). A classic group needs
the protocols (assignors and metadata) of all its members, so the coordinator stores these protocols.

For example, a member has the protocols ("range", ...) and ("cooperative-sticky", ...). The metadata of "range"
is a `ConsumerProtocolSubscription` of version 3, which contains the topic "weather". This shows that the member
understands version 3. So the coordinator also encodes the member's assignment in version 3.

Source: Kafka's `ConsumerGroupMemberMetadataValue.ClassicMemberMetadata`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hmb.protocol.consumer_protocol import ConsumerProtocolSubscription


class ClassicMetadata(NamedTuple):
    """The session timeout (ms) and the protocols of a member that uses the classic protocol.

    `protocols` contains pairs (name, metadata). The preferred protocol is first, and at least one protocol exists.
    """

    session_timeout: int
    protocols: Sequence[tuple[str, bytes]]

    @property
    def protocol(self) -> str:
        """The name of the preferred protocol."""
        return self.protocols[0][0]

    @property
    def protocol_names(self) -> set[str]:
        return {name for name, _ in self.protocols}

    @property
    def size(self) -> int:
        """The size of the metadata of all protocols, in bytes."""
        return sum(len(metadata) for _, metadata in self.protocols)

    def subscription(self) -> tuple[ConsumerProtocolSubscription, int]:
        """Return the member's subscription, and the format version of the subscription. Raises ProtocolError.

        A consumer sends its subscription with each protocol, so this method reads only the metadata of the preferred
        protocol.
        """
        return ConsumerProtocolSubscription.parse(self.protocols[0][1])
