"""A classic group with a manual clock. A test can delay the writes of its journal, or let them fail."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from unittest.mock import patch

from hmb.coordinator.classic.group import ClassicGroup
from hmb.coordinator.classic.members import Call, MemberIdentity
from hmb.coordinator.classic.settings import GroupSettings
from hmb.coordinator.group import Commit, Write
from hmb.coordinator.journal.records import GroupMetadataKey, decode_value
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.coordinator.settings import group_settings

NEWEST_JOIN = JoinGroupRequest.versions[-1]
JoinProtocol = JoinGroupRequest.JoinGroupRequestProtocol
Assignment = SyncGroupRequest.SyncGroupRequestAssignment
Answer = JoinGroupResponse | SyncGroupResponse
DISK_FULL = KafkaError(ErrorCode.NOT_COORDINATOR, "the disk is full")


@dataclass
class GroupDriver:
    """Runs the steps of a group without threads, in place of GroupRunner.

    After each step, `answers` contains the group's responses. The driver then writes the group's new record. If `holds`
    is set, the driver delays the write.
    """

    settings: GroupSettings = field(default_factory=group_settings)
    now: int = 0
    holds: bool = False  # whether the driver delays all writes until the test calls `write`
    written: bytes | None = None  # the value of the newest record
    held: list[Write] = field(default_factory=list)
    answers: dict[Call, Answer] = field(default_factory=dict)
    group: ClassicGroup = field(init=False)
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.group = ClassicGroup("g", self.settings, lambda: self.now)

    # -- requests

    def join(
        self,
        client: str,
        member_id: str = "",
        *,
        instance: str | None = None,
        session: int = 10_000,
        rebalance: int = 60_000,
        protocols: Sequence[tuple[str, bytes]] = (("range", b""),),
        protocol_type: str = "consumer",
        version: int = NEWEST_JOIN,
    ) -> Call:
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=session,
            rebalance_timeout_ms=rebalance,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinProtocol(name=name, metadata=metadata) for name, metadata in protocols],
        )
        call = Call(client, f"/{client}.example", version)
        with patch("hmb.coordinator.classic.group.uuid4", lambda: next(self._ids)):
            try:
                self.group.join(call, request, self.now)
            except KafkaError as error:
                self.answers[call] = JoinGroupResponse(error_code=error.code, member_id=member_id)
        self.settle()
        return call

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol: str | None = None,
    ) -> Call:
        request = SyncGroupRequest(
            group_id="g",
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol,
            assignments=[Assignment(member_id=each, assignment=part) for each, part in (assignments or {}).items()],
        )
        call = Call()
        try:
            self.group.sync(call, request, self.now)
        except KafkaError as error:
            self.answers[call] = SyncGroupResponse(error_code=error.code)
        self.settle()
        return call

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None) -> ErrorCode:
        request = HeartbeatRequest(
            group_id="g", generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        try:
            self.group.heartbeat(request, self.now)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def commit(self, member_id: str = "", generation: int = -1, instance: str | None = None) -> ErrorCode:
        try:
            self.group.check_commit(Commit(member_id, generation, instance, 9, {}), self.now)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def leave(self, *leaving: str | MemberIdentity) -> list[ErrorCode]:
        identities = [MemberIdentity(member_id=each) if isinstance(each, str) else each for each in leaving]
        outcomes = self.group.leave(identities, self.now)
        self.settle()
        return outcomes

    # -- time and disk

    def wait(self, ms: int) -> None:
        """Let `ms` milliseconds pass. At each deadline of the group, call the group's method `tick`."""
        end = self.now + ms
        while (deadline := self.group.next_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self.group.tick(self.now)
            self.settle()
        self.now = end

    def settle(self) -> None:
        self.group.tick(self.now)
        self.answers.update(self.group.responses)
        self.group.responses.clear()
        self.held += self.group.writes
        self.group.writes.clear()
        if not self.holds and self.held:
            self.write()

    def write(self, error: KafkaError | None = None) -> None:
        """Finish all delayed writes. The writes succeed, or they fail with `error` if it is set."""
        held, self.held = self.held, []
        for write in held:
            ((_, value),) = write.records
            self.written = value if error is None else self.written
            write.on_stored(error, self.now)
        self.settle()

    def restart(self) -> None:
        """Restore the group from its newest written record, as a broker does after a restart."""
        assert self.written is not None
        value = decode_value(GroupMetadataKey(group="g"), self.written)
        self.group = ClassicGroup.restore("g", value, self.settings, lambda: self.now)
        self.group.resume(self.now)

    # -- groups for the start of a test

    def stable(self, *clients: str, version: int = 3, **options: object) -> list[str]:
        """Make a Stable group of these clients and return their member ids. The first client is the leader."""
        calls = [self.join(client, version=version, **options) for client in clients]  # type: ignore[arg-type]
        while not all(call in self.answers for call in calls):
            deadline = self.group.next_deadline()
            assert deadline is not None
            self.wait(deadline - self.now)
        ids = [self.joined(call).member_id for call in calls]
        for member_id in reversed(ids):
            self.sync(member_id, self.group.state.generation, {each: each.encode() for each in ids})
        return ids

    def joined(self, call: Call) -> JoinGroupResponse:
        answer = self.answers[call]
        assert isinstance(answer, JoinGroupResponse)
        return answer

    def synced(self, call: Call) -> SyncGroupResponse:
        answer = self.answers[call]
        assert isinstance(answer, SyncGroupResponse)
        return answer


def static(instance: str, member_id: str = "") -> MemberIdentity:
    return MemberIdentity(member_id=member_id, group_instance_id=instance)
