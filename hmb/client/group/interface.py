"""What a consumer knows of its group: who it is there, which partitions it has, what it has committed.

A group's members share the partitions of the topics they want: each partition belongs to one member at a time. The
broker that keeps the group, its *coordinator*, is told by heartbeats that a member lives; when members come, go or
change their wishes, the group *rebalances*. Two protocols exist (`classic_member`, `consumer_member`), and both
look the same to the consumer: this file.

A rebalance changes what the consumer does, so it happens in the consumer's thread and only inside `Membership.poll`:

    on_revoked(partitions)    these go to others; commit what was read of them
    (the member tells the group that it has given them up)
    on_assigned(partitions)   these are yours now; begin where the group has committed
    on_lost(partitions)       these were given to others already: do not commit

Heartbeats and the waiting for others happen in a thread of the membership's own, which touches nothing of the
consumer's. A consumer that does not poll for `max_poll_interval` has left the group, without a word to the listener
until it polls again, as with Kafka's own consumer.

Source: KIP-62 (heartbeats in the background, max.poll.interval.ms), KIP-429 (incremental rebalances), KIP-848.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from hmb.client.group.assignors import check_assignors
from hmb.protocol.topics import TopicPartition


class OffsetAndMetadata(NamedTuple):
    """What a group commits for a partition: the offset of the next record to read, and a word of the program's own."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class GroupMetadata(NamedTuple):
    """Who a member is at the moment; a transactional producer sends it with the offsets that it commits (KIP-447)."""

    group_id: str
    generation_id: int = -1  # -1 and "": no member, as of partitions assigned by hand
    member_id: str = ""
    group_instance_id: str | None = None


PROTOCOLS = ("classic", "consumer")
LONGEST = 2**31 // 1000  # seconds: that many milliseconds go into an int32


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """A member's settings, named as Kafka names them; times in seconds."""

    group_id: str
    group_instance_id: str | None = None  # a static member: may be away for session_timeout with nobody else noticing
    group_protocol: str = "classic"  # one of PROTOCOLS: "consumer" is KIP-848
    assignors: tuple[str, ...] = ("range", "cooperative-sticky")  # classic: in order of preference
    remote_assignor: str | None = None  # consumer: "uniform" or "range"; None: as the broker prefers
    session_timeout: float = 45.0
    heartbeat_interval: float = 3.0
    max_poll_interval: float = 300.0
    request_timeout: float = 30.0
    retry_backoff: float = 0.1
    metadata_max_age: float = 300.0  # how often the leader looks whether the topics have changed
    require_stable: bool = False  # wait for offsets that a transaction has not ended with yet (read_committed)

    def __post_init__(self) -> None:
        """TypeError for what is no name of a group; ValueError for what cannot work with any broker."""
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
    """The consumer, as its membership sees it. Called in the consumer's thread, from `Membership.poll` and `close`.

    While `on_revoked` runs, the member still owns the partitions and may commit them. An exception raised here does
    not stop a rebalance: it leaves `poll` when the rebalance has ended, the first if there are several.
    """

    def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Read these from now on, beside those that stay; called after each rebalance, even with none."""

    def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Give these up, after a commit; they belong to this member until the call returns. Never called with none."""

    def on_lost(self, partitions: Collection[TopicPartition]) -> None:
        """Forget these: they belong to others already, and a commit would be refused. Never called with none."""


class GroupOffsets(Protocol):
    """A group's committed offsets; by itself for a consumer whose partitions were assigned by hand."""

    @property
    def metadata(self) -> GroupMetadata: ...

    def poll(self, timeout: float) -> None:
        """Call the callbacks of those `commit_async` that were answered; waits for nothing."""

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout: float | None = None) -> None:
        """Commit, and wait until it is done; tries again where time may help, for `timeout` or `request_timeout`.

        KafkaError says what refused it; ConnectionFailed if the coordinator cannot be reached.
        """

    def commit_async(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], callback: CommitCallback | None = None
    ) -> None:
        """Send a commit and go on; tried once. `callback` gets the error or None, from a later `poll` or `commit`."""

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for each partition, None where nothing; tries again as `commit` does."""

    def close(self, timeout: float | None = None) -> None:
        """Close the connections; answers to commits are waited for, each for `timeout` or `request_timeout`."""


class Membership(GroupOffsets, Protocol):
    """A consumer's place in its group. All methods belong to the consumer's thread."""

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """What the member owns now; changes in `poll` only."""

    def subscribe(self, topics: Collection[str]) -> None:
        """Want these topics from now on; the next `poll` joins (again) for them.

        Whoever subscribes by a pattern calls this with the names that match it, whenever they change.
        """

    def poll(self, timeout: float) -> None:
        """Do what the group asks for: join, give up, take on; waits for others at most `timeout` seconds.

        Returns at once if nothing is to be done, which costs no request: to be called before every fetch. A member
        that reads on while others rebalance gives no time. Calls the listener before it returns. Raises KafkaError for
        what is final (the group id is refused, another member has taken over the group instance id, the assignors do
        not fit the group's, ...), and what the listener has raised; what time may heal is tried
        again in the background, until it works.
        """

    def close(self, timeout: float | None = None) -> None:
        """`on_revoked` for all that is owned, then leave the group; a static member goes without a word (KIP-345)."""
