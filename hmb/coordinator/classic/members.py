"""Stores the members of a classic group, their protocols, and their leader.

Each member sends a list of protocols, its preferred protocol first. For consumers, a protocol is an assignment strategy
such as "range". The group must choose a protocol that all members support. Each member votes for the first such
protocol in its own list, and the protocol with the most votes wins. For example, three members send the lists (range,
sticky), (sticky, range) and (sticky, range). All members support both protocols, and "sticky" wins with two votes.

A member sends separate metadata for each protocol that it supports. The metadata of a consumer contains the
topics that the consumer reads. The leader of the group needs the metadata to assign the partitions.

The broker decodes a member's metadata only if the member is a consumer. It needs the topic names, because the
group's committed offsets for a topic do not expire while a member reads this topic (subscriptions.py).

Each member has a member id. A *static* member has a second id, the group instance id, which stays the same after a
restart of its client (static_members.py).

Source: Kafka's `ClassicGroup` and `ClassicGroupMember`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.join_group import JoinGroupRequest
from hmb.protocol.messages.leave_group import LeaveGroupRequest

NEW_MEMBER_TIMEOUT = 5 * 60 * 1000  # ms: a new member waits at most this long for its first JoinGroup response
LONGEST_REASON = 255  # characters of a reason in the log; Kafka's clients have the same limit
SHORTEST_WAIT = 1000  # ms: the group waits at least this long for absent static members

MemberIdentity = LeaveGroupRequest.MemberIdentity
Protocols = Sequence[tuple[str, bytes]]  # pairs (name, metadata); the preferred protocol is first


@dataclass(slots=True, eq=False)
class Call:
    """A request that waits for its response.

    When the response is ready, the group adds the request and the response to `responses`.
    """

    client_id: str = ""
    client_host: str = ""
    version: int = 0


@dataclass(slots=True, eq=False)
class ClassicMember:
    """One member of a classic group. Times are in ms.

    The session of the member ends at `deadline`. If `deadline` is None, the session has not started.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout: int
    rebalance_timeout: int
    protocols: Protocols
    assignment: bytes = b""
    deadline: int | None = None
    joining: Call | None = None  # the member's JoinGroup request, while it waits for its response
    syncing: Call | None = None  # the member's SyncGroup request, while it waits for its response
    is_new: bool = False  # whether the member waits for its first JoinGroup response
    must_sync: bool = False  # whether the member must still send SyncGroup in this generation

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def expires_at(self) -> int | None:
        """The time (ms) at which the member's session ends, or None while the session cannot end.

        The session cannot end in two cases:

        - The session has not started.
        - A JoinGroup or SyncGroup request of the member waits for its response. The group causes this delay.

        There is one exception: while a new member waits for its first response, the session can end. The client may
        have disconnected, and may never come back.
        """
        waits = self.joining is not None or self.syncing is not None
        return None if waits and not self.is_new else self.deadline

    def extend_session(self, now: int) -> None:
        """Extend the member's session: the next request must arrive within the session timeout, which starts now."""
        self.deadline = now + self.session_timeout

    def update(self, request: JoinGroupRequest) -> None:
        """Replace the member's protocols and timeouts with the values from a JoinGroup request."""
        self.protocols = protocols_of(request)
        self.session_timeout, self.rebalance_timeout = request.session_timeout_ms, request.rebalance_timeout_ms

    def metadata(self, protocol: str) -> bytes:
        return next(metadata for name, metadata in self.protocols if name == protocol)

    def supports(self, protocol: str) -> bool:
        return any(name == protocol for name, _ in self.protocols)

    @property
    def protocol_names(self) -> set[str]:
        """The names of the protocols that the member supports."""
        return {name for name, _ in self.protocols}


@dataclass(slots=True)
class ClassicMembers:
    """The members of a classic group, in the order in which their member ids were added.

    - `by_id` maps each member id to the member.
    - `instances` maps the group instance id of each static member to its member id.
    - `leader_id` is the member id of the leader, or None if the group has no members.
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
        """Return the member that has these two ids. `group_instance_id` is None for a dynamic member.

        Raises FENCED_INSTANCE_ID if a different member has the group instance id. Raises UNKNOWN_MEMBER_ID if one
        of the two ids belongs to no member.
        """
        if group_instance_id is not None:
            holder = self.instances.get(group_instance_id)
            if holder is not None and holder != member_id:
                why = f"another member has the group instance id {group_instance_id!r}"
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, why)
            if holder is None:
                why = f"no member has the group instance id {group_instance_id!r}"
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, why)
        if member_id not in self.by_id:
            why = f"the group has no member {member_id!r}; join the group again"
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, why)
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
        """Give a static member the new id `member_id`. If the member is the leader, it stays the leader."""
        assert member.group_instance_id is not None
        del self.by_id[member.member_id]
        if self.leader_id == member.member_id:
            self.leader_id = member_id
        member.member_id = self.instances[member.group_instance_id] = member_id
        self.by_id[member_id] = member

    def elect_leader(self) -> None:
        """Keep the current leader if it has joined the rebalance. Otherwise elect the first member that has joined."""
        if self.leader_id is None or self.by_id[self.leader_id].joining is None:
            self.leader_id = next(member.member_id for member in self if member.joining is not None)

    def not_yet_rejoined(self) -> list[ClassicMember]:
        """Return the dynamic (not static) members that have not joined the rebalance yet.

        The group removes these members when the deadline of the rebalance passes.
        """
        return [member for member in self if member.joining is None and not member.is_static]

    def deadline_for_static_members(self, now: int) -> int | None:
        """Return the time (ms) until which the group waits for static members, or None if it need not wait.

        The group waits only if it still has members, and none of them has sent JoinGroup. It then waits for the longest
        rebalance timeout of its members, but at least 1 s.

        Call this method after the deadline for JoinGroup requests has passed. The caller first removes the dynamic
        members that have not sent JoinGroup.
        """
        if not self.by_id or any(member.joining is not None for member in self):
            return None
        return now + max(SHORTEST_WAIT, self.rebalance_timeout)

    @property
    def size(self) -> int:
        """The sum of the sizes of all members' metadata, in bytes."""
        return sum(len(metadata) for member in self.by_id.copy().values() for _, metadata in member.protocols)

    @property
    def rebalance_timeout(self) -> int:
        """The longest rebalance timeout among all members, in ms."""
        return max((member.rebalance_timeout for member in self), default=0)

    def support_one_of(self, protocols: Protocols) -> bool:
        """Return whether at least one of these protocols is supported by all members."""
        return bool(self._supported_by_all({name for name, _ in protocols}))

    def _supported_by_all(self, names: set[str]) -> set[str]:
        return names.intersection(*(member.protocol_names for member in self))

    def select_protocol(self) -> str:
        """Return the protocol with the most votes.

        Each member votes for the first protocol in its own list that all members support.
        """
        common = self._supported_by_all(next(iter(self)).protocol_names)
        votes = Counter(next(name for name, _ in member.protocols if name in common) for member in self)
        return votes.most_common(1)[0][0]


def protocols_of(request: JoinGroupRequest) -> Protocols:
    """Return the protocols in a JoinGroup request, the preferred protocol first."""
    return [(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols]


def reason_of(request: JoinGroupRequest | MemberIdentity) -> str:
    """Return the client's reason in the form " (reason)", or "" if the client gives no reason.

    A client can give a reason when it joins or leaves a group. The caller adds the result to the end of a log
    message.
    """
    return f" ({request.reason[:LONGEST_REASON]})" if request.reason else ""
