"""A KIP-848 group with a manual clock. The test controls its topics, its journal and its clients."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID

from hmb.coordinator.cluster_topics import AssignableTopic
from hmb.coordinator.consumer.group import ConsumerGroup
from hmb.coordinator.consumer.heartbeat import check_heartbeat
from hmb.coordinator.consumer.settings import ConsumerGroupSettings
from hmb.coordinator.group import Write
from hmb.coordinator.journal.records import decode_key, decode_value
from hmb.coordinator.modern.partitions import by_topic
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from hmb.protocol.topics import PartitionId
from tests.coordinator.settings import consumer_group_settings

DISK_FULL = KafkaError(ErrorCode.NOT_COORDINATOR, "the disk is full")
FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)


class Topics:
    """The topics of a cluster. The keyword arguments are the partition counts by topic name."""

    def __init__(self, **partitions: int) -> None:
        self.version = 0
        self._next_id = 1
        self._topics: dict[str, AssignableTopic] = {}
        for name, count in partitions.items():
            self.make(name, count)

    def make(self, name: str, partitions: int) -> None:
        """Create a topic, or change the partition count of an existing topic."""
        old = self._topics.get(name)
        self._next_id += old is None
        self._topics[name] = AssignableTopic(name, old.id if old else UUID(int=self._next_id), partitions)
        self.version += 1

    def delete(self, name: str) -> None:
        self._topics.pop(name, None)
        self.version += 1

    def names(self) -> Iterable[str]:
        return list(self._topics)

    def by_name(self, name: str) -> AssignableTopic | None:
        return self._topics.get(name)

    def by_id(self, id: UUID) -> AssignableTopic | None:
        return next((topic for topic in self._topics.values() if topic.id == id), None)

    def id(self, name: str) -> UUID:
        return self._topics[name].id

    def all_partitions(self) -> set[PartitionId]:
        return {PartitionId(t.id, number) for t in self._topics.values() for number in range(t.partitions)}


@dataclass
class ConsumerDriver:
    """Runs the steps of a group without threads, in place of GroupRunner.

    After each step, the driver writes the group's new records to `disk`. If `holds` is set, the driver delays the
    writes. If `fails` is set, the writes fail.
    """

    topics: Topics = field(default_factory=lambda: Topics(a=4))
    settings: ConsumerGroupSettings = field(default_factory=lambda: consumer_group_settings(assignment_interval=0))
    now: int = 1_000
    holds: bool = False  # whether the driver delays all writes until the test calls `write` or `lose`
    fails: bool = False  # whether every write fails
    disk: dict[bytes, bytes] = field(default_factory=dict)
    held: list[Write] = field(default_factory=list)
    group: ConsumerGroup = field(init=False)

    def __post_init__(self) -> None:
        self.group = self.new()

    def new(self) -> ConsumerGroup:
        return ConsumerGroup("g", lambda group_id: self.settings, self.topics, lambda: self.now)

    def restored(self) -> ConsumerGroup:
        """Return the group that a restarted broker restores from the written records."""
        group = self.new()
        for key, value in self.disk.items():
            group.replay(decode_key(key), decode_value(decode_key(key), value))
        group.resume(self.now)
        return group

    def beat(
        self,
        member: str,
        epoch: int = 0,
        *,
        topics: Iterable[str] | None = None,
        owns: Iterable[PartitionId] | None = None,
        regex: str | None = None,
        instance: str | None = None,
        assignor: str | None = None,
        rebalance: int = -1,
    ) -> ConsumerGroupHeartbeatResponse:
        """Send one heartbeat and return the response.

        Raises KafkaError if the group refuses the heartbeat, or if the write of the group's new records fails.
        """
        owned = None if owns is None else by_topic(owns)
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member,
            member_epoch=epoch,
            instance_id=instance,
            rebalance_timeout_ms=rebalance,
            subscribed_topic_names=None if topics is None else list(topics),
            subscribed_topic_regex=regex,
            server_assignor=assignor,
            topic_partitions=None
            if owned is None
            else [
                ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic, partitions=numbers)
                for topic, numbers in owned.items()
            ],
        )
        check_heartbeat(request, 1)
        try:
            response = self.group.heartbeat(request, "client", "/host", self.now)
        finally:
            lost = self.settle()
        if lost:
            raise DISK_FULL
        return response

    def join(self, member: str, *topics: str, **options: object) -> ConsumerGroupHeartbeatResponse:
        return self.beat(member, topics=topics or ["a"], owns=(), rebalance=10_000, **options)  # type: ignore[arg-type]

    def wait(self, milliseconds: int) -> None:
        self.now += milliseconds
        self.settle()

    def settle(self) -> bool:
        """Handle the deadlines that have passed, and write the group's new records. Return whether a write failed."""
        self.group.tick(self.now)
        writes = self.group.writes.copy()
        self.group.writes.clear()
        self.held += writes
        if self.fails:
            self.lose()
        elif not self.holds:
            self.write()
        return self.fails and bool(writes)

    def write(self) -> None:
        """Finish all delayed writes: store their records in `disk`."""
        held, self.held = self.held, []
        for write in held:
            for key, value in write.records:
                if value is None:
                    self.disk.pop(key, None)
                else:
                    self.disk[key] = value
            write.on_stored(None, self.now)

    def lose(self) -> None:
        """Let all delayed writes fail."""
        held, self.held = self.held, []
        for write in held:
            write.on_stored(DISK_FULL, self.now)


@dataclass
class Client:
    """A consumer that follows its assignment. A slow consumer gives up partitions only when the test lets it."""

    driver: ConsumerDriver
    member_id: str
    topics: list[str] = field(default_factory=lambda: ["a"])
    instance: str | None = None
    epoch: int = 0
    owned: set[PartitionId] = field(default_factory=set)
    assigned: set[PartitionId] = field(default_factory=set)
    is_slow: bool = False  # whether the consumer keeps partitions that it must give up

    def beat(self) -> None:
        """Send one heartbeat. A fenced member gives up all partitions and joins with its next heartbeat."""
        joins = self.epoch == 0
        try:
            answer = self.driver.beat(
                self.member_id,
                self.epoch,
                topics=self.topics if joins else None,
                owns=self.owned,
                instance=self.instance,
                rebalance=10_000 if joins else -1,
            )
        except KafkaError as error:
            if error is DISK_FULL or error.code is ErrorCode.UNRELEASED_INSTANCE_ID:
                return  # The client tries to join again with its next heartbeat.
            if error.code not in FENCED:
                raise
            self.epoch, self.owned, self.assigned = 0, set(), set()
            return
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.assigned = {
                PartitionId(topic.topic_id, number)
                for topic in answer.assignment.topic_partitions
                for number in topic.partitions
            }
        self.owned = self.assigned | (self.owned if self.is_slow else set())

    def leave(self, epoch: int = -1) -> None:
        with suppress(KafkaError):  # If the request fails, the session of the member ends later.
            self.driver.beat(self.member_id, epoch, instance=self.instance)
        self.epoch, self.owned, self.assigned = 0, set(), set()
