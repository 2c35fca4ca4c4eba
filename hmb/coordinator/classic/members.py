"""The members of a classic group, their protocols, and their leader.

Each member sends a list of protocols. For consumers, a protocol is an assignment strategy. Each protocol has metadata
that only the leader reads. The group uses a protocol that all members support. If they share several, each member votes
for the first shared protocol of its own list. For example, the lists (range, sticky), (sticky, range) and (sticky)
share only "sticky".

A *static* member also has a group instance id, which stays the same after a restart of its client (static_members.py).

Source: Kafka's `ClassicGroup` and `ClassicGroupMember`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.join_group import JoinGroupRequest

NEW_MEMBER_TIMEOUT = 5 * 60 * 1000  # ms: the longest wait of a new member for the first response to JoinGroup
SHORTEST_WAIT = 1000  # ms: the wait for absent static members, even if their rebalance timeout is 0

Protocols = Sequence[tuple[str, bytes]]  # pairs of name and metadata, the preferred protocol first


@dataclass(slots=True, eq=False)
class Call:
    """A request that waits for its response. The group returns it in `answers` together with the response."""

    client_id: str = ""
    client_host: str = ""
    version: int = 0


@dataclass(slots=True, eq=False)
class ClassicMember:
    """One member. Times in ms. Its session ends at `deadline`; None means that its session has not started."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout: int
    rebalance_timeout: int
    protocols: Protocols
    assignment: bytes = b""
    deadline: int | None = None
    joining: Call | None = None  # the member's JoinGroup request that waits for its response
    syncing: Call | None = None  # the member's SyncGroup request that waits for its response
    is_new: bool = False  # whether the member waits for its first JoinGroup response

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def expires_at(self) -> int | None:
        """The time (ms) at which the session ends, or None while a request waits and so suspends the session.

        A new member is the exception: its client may have given up before the first response.
        """
        waits = self.joining is not None or self.syncing is not None
        return None if waits and not self.is_new else self.deadline

    def extend_session(self, now: int) -> None:
        """Start the session again: the member has its whole session timeout for the next request."""
        self.deadline = now + self.session_timeout

    def update(self, request: JoinGroupRequest) -> None:
        """Store the protocols and the timeouts of a JoinGroup request."""
        self.protocols = protocols_of(request)
        self.session_timeout, self.rebalance_timeout = request.session_timeout_ms, request.rebalance_timeout_ms

    def metadata(self, protocol: str) -> bytes:
        return next(metadata for name, metadata in self.protocols if name == protocol)

    def supports(self, protocol: str) -> bool:
        return any(name == protocol for name, _ in self.protocols)

    @property
    def protocol_names(self) -> set[str]:
        """The names of the member's protocols."""
        return {name for name, _ in self.protocols}


@dataclass(slots=True)
class ClassicMembers:
    """The members of a group by member id, in the order in which they joined.

    - `instances` maps the group instance id of each static member to its member id.
    - `leader_id` is the id of a member, or None if the group has no members.
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
        """Return the member that sent a request.

        Raises UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another member has the group instance id.
        """
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
        """Change the member id of a static member."""
        assert member.group_instance_id is not None
        del self.by_id[member.member_id]
        if self.leader_id == member.member_id:
            self.leader_id = member_id
        member.member_id = self.instances[member.group_instance_id] = member_id
        self.by_id[member_id] = member

    def elect_leader(self) -> None:
        """Elect a leader among the members that have joined. The current leader is preferred."""
        if self.leader_id is None or self.by_id[self.leader_id].joining is None:
            self.leader_id = next(member.member_id for member in self if member.joining is not None)

    def late(self) -> list[ClassicMember]:
        """Return the dynamic members that have not joined. A rebalance removes them at its deadline."""
        return [member for member in self if member.joining is None and not member.is_static]

    def wait_for_absent(self, now: int) -> int | None:
        """Return the time (ms) until which the group waits for absent static members.

        Return None if a member has joined or the group has no members: the group then does not wait.
        """
        if not self.by_id or any(member.joining is not None for member in self):
            return None
        return now + max(SHORTEST_WAIT, self.rebalance_timeout)

    @property
    def size(self) -> int:
        """The size of all members' metadata in bytes."""
        return sum(len(metadata) for member in self.by_id.copy().values() for _, metadata in member.protocols)

    @property
    def rebalance_timeout(self) -> int:
        """The longest rebalance timeout of all members (ms)."""
        return max((member.rebalance_timeout for member in self), default=0)

    def support_one_of(self, protocols: Protocols) -> bool:
        """Return whether all members support one of these protocols."""
        return bool(self._supported_by_all({name for name, _ in protocols}))

    def _supported_by_all(self, names: set[str]) -> set[str]:
        """Return those of these protocol names that all members support."""
        return names.intersection(*(member.protocol_names for member in self))

    def select_protocol(self) -> str:
        """Return the protocol with the most votes, among those that all members support."""
        common = self._supported_by_all(next(iter(self)).protocol_names)
        votes = Counter(next(name for name, _ in member.protocols if name in common) for member in self)
        return votes.most_common(1)[0][0]


def protocols_of(request: JoinGroupRequest) -> Protocols:
    """Return the protocols in a JoinGroup request, the preferred protocol first."""
    return [(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols]
