"""A group for tests of the online migration. A test controls the clock of the group, and can break its journal.

Some members of the group use the classic protocol, and other members use the KIP-848 protocol.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from hmb.coordinator.classic.group import ClassicGroup
from hmb.coordinator.classic.members import MemberIdentity
from hmb.coordinator.classic.settings import GroupSettings
from hmb.coordinator.cluster_topics import everything
from hmb.coordinator.consumer.group import ConsumerGroup
from hmb.coordinator.consumer.settings import ConsumerGroupSettings, MigrationPolicy
from hmb.coordinator.group_runner import GroupRunner, WaitingCall
from hmb.coordinator.journal.records import GroupMetadataKey, Key, KeyAndValue, decode_key, decode_value
from hmb.coordinator.migration.converter import GroupConverter
from hmb.protocol.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.coordinator.consumer.consumer_driver import DISK_FULL, Topics
from tests.coordinator.settings import consumer_group_settings, group_settings

AGAIN = ErrorCode.REBALANCE_IN_PROGRESS
Owned = ConsumerProtocolSubscription.TopicPartition
Assigned = ConsumerProtocolAssignment.TopicPartition


@dataclass
class ClassicClient:
    """A consumer that uses the classic protocol. It remembers what the coordinator has answered."""

    name: str
    instance: str | None = None
    protocols: Sequence[str] = ("range",)
    member_id: str = ""
    generation: int = -1
    # The client's JoinGroup or SyncGroup request, until the test has read the response.
    waiting: WaitingCall | None = None


@dataclass
class MigrationDriver:
    """Runs the steps of one group with a real `GroupRunner`. Topic "a" has four partitions."""

    policy: ConsumerGroupSettings = field(default_factory=lambda: consumer_group_settings(assignment_interval=0))
    settings: GroupSettings = field(default_factory=lambda: group_settings(initial_delay=0))
    topics: Topics = field(default_factory=lambda: Topics(a=4))
    now: int = 1_000
    fails: bool = False  # whether every write fails
    # If set, this function is called during the next write, and the write then fails.
    meanwhile: Callable[[], object] | None = None
    disk: dict[bytes, bytes] = field(default_factory=dict)
    runner: GroupRunner = field(init=False)
    converter: GroupConverter = field(init=False)
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.converter = GroupConverter(self.settings, lambda group_id: self.policy, self.topics, lambda: self.now)
        self.runner = self._runner(ClassicGroup("g", self.settings, lambda: self.now))

    def _runner(self, machine: ClassicGroup | ConsumerGroup) -> GroupRunner:
        journal: Any = self
        timer: Any = self
        return GroupRunner(machine, journal, timer, lambda: self.now)

    # -- the journal and the timer of the runner

    def enqueue(self, group_id: str, records: Sequence[KeyAndValue]) -> Sequence[KeyAndValue]:
        return records

    def write(self, records: Sequence[KeyAndValue]) -> None:
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
            raise DISK_FULL
        if self.fails:
            raise DISK_FULL
        for key, value in records:
            if value is None:
                self.disk.pop(key, None)
            else:
                self.disk[key] = value

    def schedule(self, runner: GroupRunner, deadline: int | None) -> None:
        """Do nothing. The method `wait` finds the deadline in the group itself."""

    # -- requests of the classic protocol

    def join(
        self, client: ClassicClient, *, topics: Iterable[str] = ("a",), owns: Iterable[int] = (), version: int = 9
    ) -> ErrorCode | None:
        """Send JoinGroup. If the response contains only a member id, send JoinGroup again with this id.

        Return the error code, or None if the coordinator waits for other members before it responds.
        """
        subscription = ConsumerProtocolSubscription(
            topics=list(topics), owned_partitions=[Owned(topic="a", partitions=list(owns))] if owns else []
        )
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            member_id=client.member_id,
            group_instance_id=client.instance,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=subscription.versioned(3))
                for name in client.protocols
            ],
        )
        code = self._send_join(client, request, version)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            request.member_id = client.member_id
            code = self._send_join(client, request, version)
        return code

    def _send_join(self, client: ClassicClient, request: JoinGroupRequest, version: int) -> ErrorCode | None:
        call = WaitingCall(client.name, f"/{client.name}.example", version)
        client.waiting = call
        try:
            with self._named_ids(client.name):
                self.runner.step(lambda now: self.converter.join(self.runner, call, request, now, everything))
        except KafkaError as error:
            client.waiting = None
            return error.code
        return self.joined(client)

    @contextmanager
    def _named_ids(self, name: str) -> Iterator[None]:
        """Let the group create each new member id from the name and a number, for example "ada-1"."""
        with (
            patch("hmb.coordinator.classic.group.uuid4", lambda: next(self._ids)),
            patch("hmb.coordinator.migration.classic_requests.uuid4", lambda: next(self._ids)),
            patch("hmb.coordinator.migration.classic_requests.encode_uuid", lambda number: f"{name}-{number}"),
        ):
            yield

    def joined(self, client: ClassicClient) -> ErrorCode | None:
        """Return the error code of the response to JoinGroup, or None if the coordinator has not responded yet."""
        answer = self._answer(client)
        if answer is None:
            return None
        assert isinstance(answer, JoinGroupResponse)
        client.member_id = answer.member_id or client.member_id
        if not answer.error_code:
            client.generation = answer.generation_id
        return ErrorCode(answer.error_code)

    def sync(self, client: ClassicClient, **parts: Sequence[int]) -> list[int] | ErrorCode | None:
        """Send SyncGroup. The group's leader passes the partitions of each member in `parts`.

        A keyword in `parts` is a member id, with "_" instead of "-".

        Return the assigned partitions or the error code. Return None if the request waits for the leader.
        """
        assignments = [
            SyncGroupRequest.SyncGroupRequestAssignment(
                member_id=member_id.replace("_", "-"),
                assignment=ConsumerProtocolAssignment(
                    assigned_partitions=[Assigned(topic="a", partitions=list(numbers))]
                ).versioned(3),
            )
            for member_id, numbers in parts.items()
        ]
        request = SyncGroupRequest(
            group_id="g",
            generation_id=client.generation,
            member_id=client.member_id,
            group_instance_id=client.instance,
            protocol_type="consumer",
            protocol_name=client.protocols[0],
            assignments=assignments,
        )
        call = WaitingCall()
        client.waiting = call
        try:
            self.runner.step(lambda now: self.converter.sync(self.runner, call, request, now))
        except KafkaError as error:
            client.waiting = None
            return error.code
        return self.synced(client)

    def synced(self, client: ClassicClient) -> list[int] | ErrorCode | None:
        """Return the assigned partitions or the error code of SyncGroup. Return None if the request still waits."""
        answer = self._answer(client)
        if answer is None:
            return None
        assert isinstance(answer, SyncGroupResponse)
        if answer.error_code:
            return ErrorCode(answer.error_code)
        if not answer.assignment:
            return []
        assigned = ConsumerProtocolAssignment.parse(answer.assignment)[0].assigned_partitions
        return [number for topic in assigned for number in topic.partitions]

    def _answer(self, client: ClassicClient) -> JoinGroupResponse | SyncGroupResponse | None:
        call = client.waiting
        if call is None or not call._has_response.is_set():
            return None
        client.waiting = None
        answer: JoinGroupResponse | SyncGroupResponse = call.wait()
        return answer

    def heartbeat(self, client: ClassicClient) -> ErrorCode:
        request = HeartbeatRequest(
            group_id="g",
            member_id=client.member_id,
            generation_id=client.generation,
            group_instance_id=client.instance,
        )
        try:
            self.runner.step(lambda now: self.converter.heartbeat(self.runner, request, now))
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def leave(self, *leaving: MemberIdentity) -> list[ErrorCode]:
        return self.runner.step(lambda now: self.converter.leave(self.runner, leaving, now), durable=True)

    # -- requests of the KIP-848 protocol

    def beat(
        self,
        member_id: str,
        epoch: int = 0,
        *,
        owns: Iterable[int] | None = None,
        topics: Sequence[str] | None = None,
        instance: str | None = None,
    ) -> ConsumerGroupHeartbeatResponse:
        """Send ConsumerGroupHeartbeat and return the response. Raises KafkaError."""
        if epoch == 0:
            topics, owns = topics or ["a"], ()
        partitions = ConsumerGroupHeartbeatRequest.TopicPartitions
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member_id,
            member_epoch=epoch,
            instance_id=instance,
            rebalance_timeout_ms=30_000 if epoch == 0 else -1,
            subscribed_topic_names=None if topics is None else list(topics),
            topic_partitions=None
            if owns is None
            else [partitions(topic_id=self.topics.id("a"), partitions=list(owns))],
        )
        return self.runner.step(
            lambda now: self.converter.consumer_heartbeat(self.runner, request, "client", "/host", now, everything),
            durable=True,
        )

    # -- time, restarts, and groups for the start of a test

    def wait(self, ms: int) -> None:
        """Let `ms` milliseconds pass. At each deadline of the group, wake the group."""
        end = self.now + ms
        while (deadline := self.runner.machine.next_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self.runner.wake()
        self.now = end

    def restart(self) -> None:
        """Restart the broker, which restores the group from the written records."""
        keys = [decode_key(key) for key in self.disk]
        assert len({isinstance(key, GroupMetadataKey) for key in keys}) == 1, "records of both kinds of group"
        values = self.disk.values()
        records = [(key, decode_value(key, value)) for key, value in zip(keys, values, strict=True)]
        self.runner = self._runner(self._restored(records))
        self.runner.step(self.runner.machine.resume)

    def _restored(self, records: Iterable[tuple[Key, Any]]) -> ClassicGroup | ConsumerGroup:
        group = self.converter.consumer("g")
        for key, value in records:
            if isinstance(key, GroupMetadataKey):
                return ClassicGroup.restore("g", value, self.settings, lambda: self.now)
            group.replay(key, value)
        return group

    def stable(self, *clients: ClassicClient) -> None:
        """Make a Stable classic group of two clients. Each one owns two partitions, and the first one is the leader."""
        first, second = clients
        assert self.join(first) is ErrorCode.NONE
        assert self.join(second) is None
        assert self.heartbeat(first) is ErrorCode.REBALANCE_IN_PROGRESS
        assert self.join(first) is ErrorCode.NONE
        assert self.joined(second) is ErrorCode.NONE
        assert self.sync(second) is None
        parts = {first.member_id.replace("-", "_"): [0, 1], second.member_id.replace("-", "_"): [2, 3]}
        assert self.sync(first, **parts) == [0, 1]
        assert self.synced(second) == [2, 3]

    @property
    def consumer(self) -> ConsumerGroup:
        return self.runner.as_kind(ConsumerGroup)

    @property
    def classic(self) -> ClassicGroup:
        return self.runner.as_kind(ClassicGroup)


def with_policy(policy: MigrationPolicy, **changes: int) -> MigrationDriver:
    return MigrationDriver(consumer_group_settings(assignment_interval=0, migration_policy=policy, **changes))


def assigned(answer: ConsumerGroupHeartbeatResponse) -> list[int]:
    assert answer.assignment is not None
    return [number for topic in answer.assignment.topic_partitions for number in topic.partitions]


def migrating(
    protocols: tuple[str, ...] = ("range",), policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
) -> tuple[MigrationDriver, ClassicClient, ClassicClient]:
    """Return a driver with a mixed group, and the classic clients ada and bob.

    The member eve has just joined this group with the KIP-848 protocol.
    """
    driver = with_policy(policy)
    ada, bob = ClassicClient("ada", protocols=protocols), ClassicClient("bob", protocols=protocols)
    driver.stable(ada, bob)
    driver.beat("eve")
    return driver, ada, bob


def settled() -> tuple[MigrationDriver, ClassicClient, ClassicClient]:
    """Return a driver with a mixed group, and the classic clients ada and bob.

    Each member of the group has its target assignment of epoch 3.
    """
    driver, ada, bob = migrating()
    for client in (ada, bob):
        assert driver.join(client) is ErrorCode.NONE
        driver.sync(client)
    driver.beat("eve", 3, owns=())
    assert driver.consumer.state_name == "Stable"
    return driver, ada, bob
