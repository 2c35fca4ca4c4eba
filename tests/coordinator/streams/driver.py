"""A streams group for tests. A test controls the clock, the topics and the disk of the group.

The function `word_count` returns the topology that the members of the group use.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hmb.coordinator.group import Write
from hmb.coordinator.journal.records import decode_key, decode_value
from hmb.coordinator.streams.group import StreamsGroup
from hmb.coordinator.streams.heartbeat import check_heartbeat
from hmb.coordinator.streams.records import STREAMS_KEYS
from hmb.coordinator.streams.settings import StreamsGroupSettings
from hmb.coordinator.streams.topics import InternalTopic
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.streams_group_heartbeat import (
    Endpoint,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
)
from tests.coordinator.consumer.consumer_driver import Topics

Topology = StreamsGroupHeartbeatRequest.Topology
Subtopology = Topology.Subtopology
TopicInfo = Subtopology.TopicInfo
KEYS = {key.record_type: key for key in STREAMS_KEYS}
REPARTITION, CHANGELOG = "count-repartition", "count-changelog"
DISK_FULL = KafkaError(ErrorCode.NOT_COORDINATOR, "the disk is full")
SETTINGS = StreamsGroupSettings(
    session_timeout=45_000,
    heartbeat_interval=5_000,
    assignment_interval=0,
    max_size=10,
    standby_replicas=0,
    initial_delay=0,
)


def word_count(epoch: int = 0) -> Topology:
    """Return a topology: subtopology 0 splits the lines of topic "lines", and subtopology 1 counts their words."""
    split = Subtopology(subtopology_id="0", source_topics=["lines"], repartition_sink_topics=[REPARTITION])
    count = Subtopology(
        subtopology_id="1",
        repartition_source_topics=[TopicInfo(name=REPARTITION)],
        state_changelog_topics=[TopicInfo(name=CHANGELOG)],
    )
    return Topology(epoch=epoch, subtopologies=[split, count])


def tasks(*names: str) -> list[TaskIds]:
    """Return tasks for a request. For example, the name "0_1" stands for task 1 of subtopology 0."""
    pairs = [name.split("_") for name in names]
    return [TaskIds(subtopology_id=subtopology, partitions=[int(number)]) for subtopology, number in pairs]


def names(tasks: Iterable[TaskIds] | None) -> list[str] | None:
    """Return the tasks of a response as names such as "0_1", or None if the response contains no tasks."""
    if tasks is None:
        return None
    return [f"{each.subtopology_id}_{number}" for each in tasks for number in each.partitions]


@dataclass
class StreamsDriver:
    """Runs the steps of a streams group without threads, in place of GroupRunner."""

    topics: Topics = field(default_factory=lambda: Topics(**{"lines": 2, REPARTITION: 2, CHANGELOG: 2}))
    settings: StreamsGroupSettings = SETTINGS
    now: int = 1_000
    fails: bool = False  # whether every write fails
    disk: dict[bytes, bytes] = field(default_factory=dict)
    missing: tuple[InternalTopic, ...] = ()
    group: StreamsGroup = field(init=False)

    def __post_init__(self) -> None:
        self.group = self.new()

    def new(self) -> StreamsGroup:
        return StreamsGroup("g", lambda group_id: self.settings, self.topics, lambda: self.now)

    def restored(self) -> StreamsGroup:
        """Return the group that a restarted broker restores from the written records."""
        group = self.new()
        for raw, value in self.disk.items():
            key = decode_key(raw, KEYS)
            group.replay(key, decode_value(key, value))
        group.resume(self.now)
        return group

    def beat(
        self,
        member: str,
        epoch: int,
        *,
        active: Iterable[str] | None = None,
        standby: Iterable[str] = (),
        topology: Topology | None = None,
        process: str | None = None,
        endpoint: Endpoint | None = None,
        shutdown: bool = False,
    ) -> StreamsGroupHeartbeatResponse:
        """Send one heartbeat and return the response.

        Raises KafkaError if the group refuses the heartbeat, or if the write of the group's new records fails.
        """
        request = StreamsGroupHeartbeatRequest(
            group_id="g",
            member_id=member,
            member_epoch=epoch,
            rebalance_timeout_ms=10_000 if epoch == 0 else -1,
            topology=topology,
            active_tasks=None if active is None else tasks(*active),
            standby_tasks=None if active is None else tasks(*standby),
            warmup_tasks=None if active is None else [],
            process_id=process,
            user_endpoint=endpoint,
            shutdown_application=shutdown,
        )
        check_heartbeat(request)
        try:
            response, self.missing = self.group.heartbeat(request, "client", "/host", self.now)
        finally:
            lost = self.settle()
        if lost:
            raise DISK_FULL
        return response

    def join(
        self, member: str, topology: Topology | None = None, process: str = "", endpoint: Endpoint | None = None
    ) -> StreamsGroupHeartbeatResponse:
        """Let a member join. If `process` is empty, the member gets a process id that no other member has."""
        process = process or f"process of {member}"
        return self.beat(member, 0, active=(), topology=topology or word_count(), process=process, endpoint=endpoint)

    def wait(self, milliseconds: int) -> None:
        self.now += milliseconds
        self.settle()

    def settle(self) -> bool:
        """Handle the deadlines that have passed, and write the group's new records. Return whether a write failed."""
        self.group.tick(self.now)
        writes: list[Write] = self.group.writes.copy()
        self.group.writes.clear()
        for write in writes:
            for key, value in () if self.fails else write.records:
                if value is None:
                    self.disk.pop(key, None)
                else:
                    self.disk[key] = value
            write.on_stored(DISK_FULL if self.fails else None, self.now)
        return self.fails and bool(writes)
