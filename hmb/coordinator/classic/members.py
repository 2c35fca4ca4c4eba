"""The members of a classic group: who they are, what they speak, who leads.

Every member brings a list of protocols (assignment strategies, for consumers), each with metadata that only the leader
reads.  The group uses one that all its members have; among several, each member votes for the first of its own list.

A *static* member (KIP-345) brings an id of its own, the group instance id, that survives its restarts.  It still gets a
member id from the coordinator, but when it comes again without one it takes over the place of its old self, whose
member id is fenced from then on.

Source: Kafka's `ClassicGroup` and `ClassicGroupMember`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hmb.protocol.errors import ErrorCode, KafkaError


@dataclass(slots=True, eq=False)
class Call:
    """A request that may be answered later: the group keeps it, and gives it back with its answer."""

    client_id: str = ""
    client_host: str = ""
    version: int = 0


@dataclass(slots=True, eq=False)
class ClassicMember:
    """One member.  Times in ms; it has until `deadline` to be heard of, if its session has begun already."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout: int
    rebalance_timeout: int
    protocols: Sequence[tuple[str, bytes]]  # with their metadata, the preferred one first
    assignment: bytes = b""
    deadline: int | None = None
    joining: Call | None = None  # its JoinGroup that waits
    syncing: Call | None = None  # its SyncGroup that waits
    is_new: bool = False  # it has not been told yet that it is a member

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def expires_at(self) -> int | None:
        """When its session ends.  One that waits for us cannot be heard of; but a new one might have given up."""
        waits = self.joining is not None or self.syncing is not None
        return None if waits and not self.is_new else self.deadline

    def metadata(self, protocol: str) -> bytes:
        return next(metadata for name, metadata in self.protocols if name == protocol)

    def speaks(self, protocol: str) -> bool:
        return any(name == protocol for name, _ in self.protocols)

    @property
    def protocol_names(self) -> set[str]:
        """The names of its protocols, for comparisons with many others."""
        return {name for name, _ in self.protocols}


@dataclass(slots=True)
class ClassicMembers:
    """Members by their ids, in the order in which they came.

    - `instances` holds the member id of each static member, and nothing else;
    - `leader_id` is the id of a member, or None exactly where there are none.
    """

    by_id: dict[str, ClassicMember] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    leader_id: str | None = None

    def __iter__(self) -> Iterator[ClassicMember]:
        return iter(self.by_id.values())

    def __len__(self) -> int:
        return len(self.by_id)

    def __contains__(self, member_id: str) -> bool:
        return member_id in self.by_id

    def check(self, member_id: str, group_instance_id: str | None) -> ClassicMember:
        """The member that a request names.  Raises UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another took over."""
        if group_instance_id is not None:
            holder = self.instances.get(group_instance_id)
            if holder is not None and holder != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
            if holder is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if member_id not in self.by_id:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return self.by_id[member_id]

    def add(self, member: ClassicMember) -> None:
        if member.group_instance_id is not None:
            self.instances[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.by_id[member.member_id] = member

    def remove(self, member_id: str) -> ClassicMember | None:
        member = self.by_id.pop(member_id, None)
        if member is not None and member.group_instance_id is not None:
            del self.instances[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.by_id), None)
        return member

    def rename(self, member: ClassicMember, member_id: str) -> None:
        """A static member goes on under another member id."""
        assert member.group_instance_id is not None
        del self.by_id[member.member_id]
        if self.leader_id == member.member_id:
            self.leader_id = member_id
        member.member_id = self.instances[member.group_instance_id] = member_id
        self.by_id[member_id] = member

    def elect_leader(self) -> bool:
        """Let a member lead that has joined; the present leader if it has.  False: nobody has joined."""
        if self.leader_id is not None and self.by_id[self.leader_id].joining is not None:
            return True
        joined = next((member for member in self if member.joining is not None), None)
        if joined is not None:
            self.leader_id = joined.member_id
        return joined is not None

    @property
    def size(self) -> int:
        """The bytes of all members' metadata."""
        return sum(len(metadata) for member in self.by_id.copy().values() for _, metadata in member.protocols)

    @property
    def rebalance_timeout(self) -> int:
        """The longest that a member asks for (ms)."""
        return max((member.rebalance_timeout for member in self), default=0)

    def support_one_of(self, protocols: Sequence[tuple[str, bytes]]) -> bool:
        """Whether all members speak one of these."""
        return bool(self._spoken_by_all({name for name, _ in protocols}))

    def _spoken_by_all(self, names: set[str]) -> set[str]:
        """Return those of the protocols that all members speak."""
        return names.intersection(*(member.protocol_names for member in self))

    def select_protocol(self) -> str:
        """Return the protocol with the most votes, among those that all members speak."""
        common = self._spoken_by_all(next(iter(self)).protocol_names)
        votes = Counter(next(name for name, _ in member.protocols if name in common) for member in self)
        return votes.most_common(1)[0][0]
