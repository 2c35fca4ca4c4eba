"""The names that a consumer and its group share: settings, offsets, identity and the listener of a rebalance.

The members of a group share the partitions of the topics that they subscribe to. Each partition belongs to one member
at a time. The broker that manages the group is its *coordinator*. Heartbeats show the coordinator that a member is
alive. The group *rebalances* when members join or leave, or when a member changes its subscription.

A rebalance changes which partitions the consumer reads. It therefore runs in the consumer's thread, and only while the
consumer polls::

    on_revoked(partitions)    these partitions go to other members: commit their positions now
    (the member reports to the coordinator that it has given them up)
    on_assigned(partitions)   these partitions belong to this member now: begin at the committed offsets
    on_lost(partitions)       these partitions already belong to other members: do not commit

The membership has a thread of its own. That thread sends heartbeats and waits for other members, and never touches the
consumer's data. A consumer that does not poll for `max_poll_interval` leaves the group. The membership calls the
consumer's listener at the next poll, as Kafka's own consumer does.

Source: KIP-62 (heartbeats in a thread of their own, max.poll.interval.ms), KIP-429 (incremental rebalances), KIP-848.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from hmb.client.group.assignors import check_assignors
from hmb.protocol.enums import NO_GENERATION, NO_LEADER_EPOCH, GroupType
from hmb.protocol.topics import TopicPartition


class OffsetAndMetadata(NamedTuple):
    """A committed offset: the offset of the next record to read, and a text that the application chooses."""

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_LEADER_EPOCH


class GroupMetadata(NamedTuple):
    """The identity of a member. A transactional producer sends it with the offsets that it commits (KIP-447).

    The defaults -1 and "" mean that the consumer is not a member, because its partitions were assigned with `assign`.
    """

    group_id: str
    generation_id: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None


PROTOCOLS = (GroupType.CLASSIC, GroupType.CONSUMER)
LONGEST = 2**31 // 1000  # seconds; as milliseconds, this number just fits into an int32


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings:
    """A member's settings. Kafka's settings have the same names, and times are in seconds.

    A member with a `group_instance_id` is static: it may be absent for `session_timeout`, and the group does not
    rebalance. `assignors` belong to the classic protocol, in the order of preference. `remote_assignor` belongs to
    KIP-848: it is "uniform" or "range", and None leaves the choice to the broker. The leader of a classic group checks
    every `metadata_max_age` seconds whether the topics have changed. With `require_stable`, the member waits for
    offsets that an open transaction may still commit (read_committed).
    """

    group_id: str
    group_instance_id: str | None = None
    group_protocol: str = GroupType.CLASSIC
    assignors: tuple[str, ...] = ("range", "cooperative-sticky")
    remote_assignor: str | None = None
    session_timeout: float = 45.0
    heartbeat_interval: float = 3.0
    max_poll_interval: float = 300.0
    request_timeout: float = 30.0
    retry_backoff: float = 0.1
    metadata_max_age: float = 300.0
    require_stable: bool = False

    def __post_init__(self) -> None:
        """Check the settings.

        Raises TypeError for a group id that is not a str, and ValueError for values that no broker can accept.
        """
        if not isinstance(self.group_id, str):
            raise TypeError(f"a group's name is a str, not {self.group_id!r}")
        if not self.group_id:
            raise ValueError("a group needs a name")
        if self.group_protocol not in PROTOCOLS:
            raise ValueError(f"a group protocol is one of {', '.join(PROTOCOLS)}, not {self.group_protocol!r}")
        check_assignors(self.assignors)
        if not 0 < self.heartbeat_interval < self.session_timeout:
            what = f"a heartbeat every {self.heartbeat_interval:g} s, and a session of {self.session_timeout:g} s"
            raise ValueError(f"{what}: there must be several heartbeats in a session")
        if not 0 < self.max_poll_interval < LONGEST or self.session_timeout >= LONGEST:
            raise ValueError(f"max_poll_interval and session_timeout are seconds, above 0 and below {LONGEST:,}")


CommitCallback = Callable[[Mapping[TopicPartition, OffsetAndMetadata], Exception | None], None]


class RebalanceListener(Protocol):
    """The methods of a consumer that its membership calls, always in the consumer's thread.

    An exception that a method raises does not stop the rebalance. `GroupMembership.poll` raises the first exception
    after the rebalance has ended.
    """

    def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Start to read these partitions, too. The call follows each rebalance, even if no partition is new."""

    def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Commit and give up these partitions, at least one. They belong to this member until the method returns."""

    def on_lost(self, partitions: Collection[TopicPartition]) -> None:
        """Stop reading these partitions, at least one. They already belong to other members, so do not commit."""
