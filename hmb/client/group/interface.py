"""The types for a consumer in a group: member settings, committed offsets, identity, rebalance listener.

The members of a group divide the partitions of their topics among themselves. At any time, a partition belongs to at
most one member. One broker, the *coordinator*, manages the group. Each member sends heartbeats to the coordinator, to
show that the member is alive. When a member joins the group, leaves it or changes its subscription, the group assigns
the partitions again. This is called a *rebalance*.

During a rebalance, `GroupMembership.poll` calls these methods of the consumer's `RebalanceListener`. It calls them
in the consumer's own thread, because no other thread may change the consumer's data:
    on_revoked(partitions)    the member must give up these partitions: commit their positions now
    (after this call, the member informs the coordinator that it has given up the partitions)
    on_assigned(partitions)   the member gets these partitions: begin to read at the committed offsets
    on_lost(partitions)       other members may already own these partitions: do not commit any position

A second thread, the membership thread, sends heartbeats and waits for other members. This thread never uses the
consumer's data, and never calls `on_revoked`, `on_assigned` or `on_lost`. Only the consumer's own thread calls
these methods: while the consumer polls, or when it leaves the group. Therefore a rebalance waits for the next
poll, as in Kafka's own client. If the consumer does not poll for `max_poll_interval`, the member leaves the
group.

Source: KIP-62 (heartbeats in a thread of their own, max.poll.interval.ms), KIP-429 (incremental rebalances), KIP-848.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from hmb.client.group.assignors import check_assignors
from hmb.protocol.enums import CONSUMER_GROUP_TYPES, NO_GENERATION, NO_LEADER_EPOCH
from hmb.protocol.topics import TopicPartition


class OffsetAndMetadata(NamedTuple):
    """A committed offset: the offset of the next record to read, with a text that the application can choose."""

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_LEADER_EPOCH


Offsets = Mapping[TopicPartition, int | OffsetAndMetadata]  # the offsets that an application commits


def with_metadata(offset: int | OffsetAndMetadata) -> OffsetAndMetadata:
    """Return `offset` as an `OffsetAndMetadata`. If `offset` is only a number, the metadata is empty."""
    return OffsetAndMetadata(offset) if isinstance(offset, int) else offset


class GroupMetadata(NamedTuple):
    """The identity of a group member.

    A transactional producer can commit offsets for a consumer. Together with the offsets, the producer sends the
    consumer's identity. The coordinator then rejects the offsets if this member has lost its partitions (KIP-447).

    If a consumer chooses its partitions with `assign`, it is not a member of the group. Its `generation_id` is then
    -1, and its `member_id` is "".
    """

    group_id: str
    generation_id: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None


LONGEST = 2**31 // 1000  # seconds; the longest time whose milliseconds fit into an int32


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings:
    """The settings of a group member. Times are in seconds.

    Kafka's consumer has the same settings, with similar names. `ConsumerSettings` declares their default values.

    - A member with a `group_instance_id` is *static*. If a static member stops and starts again within
      `session_timeout`, the group does not rebalance.
    - `assignors` lists the assignors for the classic protocol. The member prefers the first one.
    - `remote_assignor` is the assignor for the consumer protocol (KIP-848): "uniform" or "range". If it is None,
      the broker chooses.
    - In a classic group, one member is the leader. Every `metadata_max_age` seconds, the leader checks whether
      the group's topics have new partitions.
    - An open transaction may contain new offsets of the group. If `require_stable` is true, the member waits
      until the transaction ends, and then fetches the committed offsets.
    """

    group_id: str
    group_instance_id: str | None
    group_protocol: str
    assignors: tuple[str, ...]
    remote_assignor: str | None
    session_timeout: float
    heartbeat_interval: float
    max_poll_interval: float
    request_timeout: float
    retry_backoff: float
    metadata_max_age: float
    require_stable: bool

    def __post_init__(self) -> None:
        """Check the settings.

        Raises TypeError if the group id is not a str. Raises ValueError if a setting has a value that no broker
        accepts.
        """
        if not isinstance(self.group_id, str):
            raise TypeError(f"a group's name must be a str, not {self.group_id!r}")
        if not self.group_id:
            raise ValueError("a group needs a name")
        if self.group_protocol not in CONSUMER_GROUP_TYPES:
            known = ", ".join(CONSUMER_GROUP_TYPES)
            raise ValueError(f"a group protocol is one of {known}, not {self.group_protocol!r}")
        check_assignors(self.assignors)
        if not 0 < self.heartbeat_interval < self.session_timeout:
            what = f"a heartbeat every {self.heartbeat_interval:g} s, and a session of {self.session_timeout:g} s"
            raise ValueError(f"{what}: heartbeat_interval must be above 0 and below session_timeout")
        if not 0 < self.max_poll_interval < LONGEST or self.session_timeout >= LONGEST:
            raise ValueError(f"max_poll_interval and session_timeout must be above 0 and below {LONGEST:,} seconds")


CommitCallback = Callable[[Mapping[TopicPartition, OffsetAndMetadata], Exception | None], None]


class RebalanceListener(Protocol):
    """The methods that a group membership calls during a rebalance, always in the consumer's thread.

    If one of these methods raises an exception, the rebalance still continues. After all calls, `GroupMembership.poll`
    raises the first exception.
    """

    def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Start to read these partitions, in addition to the partitions that the consumer already reads.

        This method is called after each rebalance, even if `partitions` is empty.
        """

    def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Commit the positions of these partitions, and stop reading them.

        The partitions belong to this member until the method returns. `partitions` is never empty.
        """

    def on_lost(self, partitions: Collection[TopicPartition]) -> None:
        """Stop reading these partitions, without committing their positions.

        The partitions may already belong to other members. `partitions` is never empty.
        """
