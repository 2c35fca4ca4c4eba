"""Collects the state of a running broker.

`collect` asks each part of the broker for its own data: the topics for their logs, the coordinators for groups
and transactions, the server for its connections. No lock covers all parts at once. After one part has returned
its data, this data can change before the next part answers. The data of two parts can therefore be some
milliseconds apart.

For example, `collect` reads the position of a consumer group. The group then commits a new position. After this,
`collect` reads the number of OffsetCommit requests. This number includes the commit, but the group's position is old.

Cost: `collect` takes about 15 us for each segment. In two cases, it must also read the header of a batch from
a file:

- If the timestamp of a segment's first batch is not in memory, `collect` reads the header of this batch.
- If a group has not read a partition to its end, `collect` reads the header of the batch at the group's
  position.

With a `StateCache`, `collect` usually does not read unchanged logs again.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import hmb
from hmb.broker.context import BrokerContext, ConnectedClient
from hmb.broker.lifecycle import BrokerServer
from hmb.broker.request_counters import RequestCount
from hmb.broker.topics.registry import Topics
from hmb.broker.topics.topic import Topic
from hmb.coordinator.consumer.requests import ConsumerGroupRequests
from hmb.coordinator.streams.requests import StreamsGroupRequests
from hmb.coordinator.transactions.coordinator import TransactionCoordinator
from hmb.monitoring.positions import positions_of
from hmb.monitoring.sampling import Sampler, SampleRates
from hmb.monitoring.state import (
    ApiInfo,
    BrokerState,
    ConnectionInfo,
    EventInfo,
    GroupInfo,
    GroupMemberInfo,
    PartitionInfo,
    PositionInfo,
    ProcessInfo,
    ProducerInfo,
    SegmentInfo,
    TopicInfo,
    TransactionInfo,
)
from hmb.monitoring.state_cache import StateCache
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.consumer_protocol import ConsumerProtocolAssignment
from hmb.protocol.enums import NO_OFFSET, NO_PRODUCER_ID, GroupType
from hmb.protocol.errors import KafkaError, ProtocolError
from hmb.protocol.messages import api_name
from hmb.protocol.messages.list_groups import ListGroupsResponse
from hmb.protocol.messages.streams_group_heartbeat import TaskIds
from hmb.protocol.topics import TopicPartition
from hmb.records.compression import CODEC_MASK, Codec
from hmb.storage.compaction.cleaner import Cleaner
from hmb.storage.log import Log
from hmb.storage.segment import Segment
from hmb.units import MS_PER_S

PROCESS = Path("/proc/self")


def collect(server: BrokerServer, sampler: Sampler | None = None, cache: StateCache | None = None) -> BrokerState:
    """Return the state of a started broker. Raises RuntimeError if the broker is not started.

    Rates, such as records per second, are in the state only if there is a `sampler`. A caller can pass the same
    `cache` to each call. In this case, `collect` usually skips the logs that have not changed since the last call.
    """
    broker = server.context
    cache = StateCache() if cache is None else cache
    rates = SampleRates() if sampler is None else sampler.rates()
    return BrokerState(
        time=broker.clock.now_ms(),
        version=hmb.__version__,
        cluster_id=broker.cluster_id,
        node_id=broker.config.broker_id,
        addresses=[listener.advertised for listener in server.listeners],
        data_dir=str(server.data_dir.resolve()),
        started=server.started_ms,
        process=_process(),
        user=None,
        missing={},
        topics=[_topic(topic, server.cleaner, rates, cache) for topic in broker.topics.all()],
        groups=list(_groups(broker, sampler, cache)),
        transactions=_transactions(broker.transactions),
        connections=[_connection(address, client) for address, client in server.clients()],
        requests=[_api(api, count, rates) for api, count in sorted(broker.requests.copy().items())],
        events=[EventInfo(*event) for event in broker.events.all()],
    )


# -- topics


def _topic(topic: Topic, cleaner: Cleaner, rates: SampleRates, cache: StateCache) -> TopicInfo:
    partitions = []
    for number, log in sorted(topic.partitions.items()):
        cached = cache.of(log)
        if cached.info is None:
            cached.info = _partition(TopicPartition(topic.name, number), log, cleaner, rates)
        partitions.append(cached.info)
    return TopicInfo(topic.name, str(topic.id), topic.is_internal, dict(topic.configs), partitions)


def _partition(name: TopicPartition, log: Log, cleaner: Cleaner, rates: SampleRates) -> PartitionInfo:
    segments, stable, end = log.segments, log.last_stable_offset, log.log_end_offset
    return PartitionInfo(
        partition=name.partition,
        leader_epoch=log.leader_epoch,
        log_start_offset=log.log_start_offset,
        last_stable_offset=stable,
        high_watermark=end,
        log_end_offset=end,
        recovery_point=log.recovery_point,
        syncs=log.group_commit.syncs,
        dirty_ratio=cleaner.dirty_ratio(name, log),
        records_per_s=rates.records_per_s(name, end),
        bytes=sum(segment.size for segment in segments),
        segments=[_segment(segment, is_active=segment is segments[-1]) for segment in segments],
        producers=_producers(log),
        error=refusal(log),
    )


def _segment(segment: Segment, *, is_active: bool) -> SegmentInfo:
    has_batch = segment.size > 0
    return SegmentInfo(
        base_offset=segment.base_offset,
        bytes=segment.size,
        offset_index_entries=segment.offset_index.size // segment.offset_index.ENTRY.size,
        time_index_entries=segment.time_index.size // segment.time_index.ENTRY.size,
        batches=segment.batch_count,
        first_timestamp=_first_timestamp(segment) if has_batch else None,
        max_timestamp=segment.max_timestamp if has_batch else None,
        is_active=is_active,
    )


def _first_timestamp(segment: Segment) -> int | None:
    if segment.first_timestamp is not None:
        return segment.first_timestamp
    try:
        _, first = next(segment.batches(0, segment.size))
    except (KafkaError, OSError, StopIteration):  # The segment is damaged, or retention has just deleted it.
        return None
    return first.max_timestamp


def _producers(log: Log) -> list[ProducerInfo]:
    return [
        ProducerInfo(
            producer_id=active.producer_id,
            epoch=active.producer.epoch,
            last_sequence=active.producer.last_sequence,
            last_timestamp=active.producer.timestamp,
            transaction_start=None if active.first_offset == NO_OFFSET else active.first_offset,
        )
        for active in log.producers.active()
    ]


def refusal(log: Log) -> str | None:
    """Return the reason why a log refuses records, or None if it accepts records."""
    try:
        log.group_commit.raise_if_failed()
    except KafkaError as error:
        return str(error)
    return None if log.refusal is None else str(log.refusal)


# -- groups


def _groups(broker: BrokerContext, sampler: Sampler | None, cache: StateCache) -> Iterator[GroupInfo]:
    with contextlib.suppress(KafkaError):  # The broker still loads its groups, so it cannot list them.
        for listed in broker.groups.list_groups([], []):
            with contextlib.suppress(KafkaError):  # Somebody has deleted the group since the call above.
                yield _group(broker, listed, sampler, cache)


def _group(
    broker: BrokerContext, listed: ListGroupsResponse.ListedGroup, sampler: Sampler | None, cache: StateCache
) -> GroupInfo:
    name, now = listed.group_id, broker.clock.now_ms()
    full_second = _second(now)  # `lag_ms` is computed from this rounded time, so `lag_ms` grows at most once a second.
    members = {
        GroupType.CONSUMER: _consumer_members,
        GroupType.SHARE: _share_members,
        GroupType.STREAMS: _streams_members,
    }
    positions = sorted(positions_of(broker, listed).items())
    ages = broker.groups.last_heartbeats(name)
    return GroupInfo(
        group_id=name,
        type=listed.group_type,
        protocol_type=listed.protocol_type,
        state=listed.group_state,
        members=[
            replace(each, last_heartbeat=_second(now - ages[each.member_id]) if each.member_id in ages else None)
            for each in members.get(GroupType(listed.group_type), _classic_members)(broker, name)
        ],
        positions=[_position(broker.topics, cache, each, offset, full_second) for each, offset in positions],
        lags=[] if sampler is None else sampler.lags(name),
    )


def _second(ms: int) -> int:
    """Round a time (ms) down to a whole second.

    A browser page receives a group again each time a value of the group changes. One value is the time of the last
    heartbeat. It is computed from two clocks, so its milliseconds can change without a new heartbeat. The rounding
    avoids most of these updates.
    """
    return ms // MS_PER_S * MS_PER_S


def _consumer_members(broker: BrokerContext, group_id: str) -> list[GroupMemberInfo]:
    return [
        GroupMemberInfo(
            *(member.member_id, member.instance_id, member.client_id, member.client_host),
            last_heartbeat=None,
            partitions=_names((it.topic_name, it.partitions) for it in member.assignment.topic_partitions),
        )
        for member in ConsumerGroupRequests(broker.groups).describe(group_id).members
    ]


def _share_members(broker: BrokerContext, group_id: str) -> list[GroupMemberInfo]:
    return [
        GroupMemberInfo(
            *(member.member_id, None, member.client_id, member.client_host),
            last_heartbeat=None,
            partitions=_names((it.topic_name, it.partitions) for it in member.assignment.topic_partitions),
        )
        for member in broker.share.describe(group_id).members
    ]


def _streams_members(broker: BrokerContext, group_id: str) -> list[GroupMemberInfo]:
    """Return the members of a streams group, each with the partitions that its active tasks read."""
    group = StreamsGroupRequests(broker.groups).describe(group_id)
    topology = (group.topology.subtopologies if group.topology else None) or []
    sources = {
        each.subtopology_id: [*each.source_topics, *(topic.name for topic in each.repartition_source_topics)]
        for each in topology
    }

    def read(tasks: TaskIds) -> Iterator[tuple[str, list[int]]]:
        for name in sources.get(tasks.subtopology_id, ()):
            if (topic := broker.topics.get(name)) is not None:
                yield name, [number for number in tasks.partitions if number in topic.partitions]

    return [
        GroupMemberInfo(
            *(member.member_id, member.instance_id, member.client_id, member.client_host),
            last_heartbeat=None,
            partitions=_names(it for tasks in member.assignment.active_tasks for it in read(tasks)),
        )
        for member in group.members
    ]


def _classic_members(broker: BrokerContext, group_id: str) -> list[GroupMemberInfo]:
    return [
        GroupMemberInfo(
            *(member.member_id, member.group_instance_id, member.client_id, member.client_host),
            last_heartbeat=None,
            partitions=_assigned(member.member_assignment),
        )
        for member in broker.groups.describe(group_id).members
    ]


def _assigned(assignment: bytes) -> list[str]:
    """Return the partitions in the assignment of one group member, for example ["orders-0", "orders-1"].

    In a classic group, one of the clients encodes the assignments. This function knows only the format that
    consumers use. It returns [] if it cannot decode the bytes, for example if the group belongs to Kafka Connect.
    """
    if not assignment:
        return []
    try:
        decoded, _ = ConsumerProtocolAssignment.parse(assignment)
    except ProtocolError:
        return []
    return _names((it.topic, it.partitions) for it in decoded.assigned_partitions)


def _names(topics: Iterator[tuple[str, Sequence[int]]]) -> list[str]:
    return sorted(f"{topic}-{partition}" for topic, partitions in topics for partition in partitions)


def _position(
    topics: Topics, cache: StateCache, partition: TopicPartition, offset: int, now: int
) -> PositionInfo:
    topic = topics.get(partition.topic)
    log = None if topic is None else topic.partitions.get(partition.partition)
    if log is None:
        return PositionInfo(partition.topic, partition.partition, offset, lag=None, lag_ms=None)
    lag = max(0, log.high_watermark - offset)
    if not lag:
        return PositionInfo(*partition, offset, lag, lag_ms=0)
    timestamps = cache.of(log).timestamps
    if offset not in timestamps:
        timestamps[offset] = _timestamp_from(log, offset)
    timestamp = timestamps[offset]
    return PositionInfo(*partition, offset, lag, None if timestamp is None else max(0, now - timestamp))


def _timestamp_from(log: Log, offset: int) -> int | None:
    """Return the largest timestamp (ms) of the first batch that ends at or after `offset`.

    Return None if no such batch exists, or if it cannot be read.

    `Log.read` counts repeated reads of an offset as a possible sign of damage (storage/recovery/read_checks.py).
    The reads of this function must not count, so the function does not call `Log.read`.
    """
    offset = max(offset, log.log_start_offset)
    try:
        for segment in log.segments_from(offset):
            if (found := segment.find(offset, segment.size)) is not None:
                return found[1].max_timestamp
    except (KafkaError, OSError):  # The segment is damaged, or retention has just deleted it.
        pass
    return None


# -- transactions, requests and the process


def _transactions(transactions: TransactionCoordinator) -> list[TransactionInfo]:
    try:
        found = transactions.list()
    except KafkaError:  # The broker has not finished loading its transactions.
        return []
    return [
        TransactionInfo(
            transactional_id=each.transactional_id,
            producer_id=each.producer_id,
            epoch=each.epoch,
            state=each.state.label,
            started=None if each.is_between_transactions else each.started,
            timeout_ms=each.timeout,
            partitions=sorted(map(str, each.partitions)),
        )
        for each in found
    ]


def _connection(address: str, client: ConnectedClient) -> ConnectionInfo:
    header = client.last_header
    return ConnectionInfo(
        client=address,
        client_id=None if header is None else header.client_id,
        software=client.software,
        last_api=None if header is None else api_name(header.api_key),
        codec=None if client.last_attributes is None else Codec(client.last_attributes & CODEC_MASK).name.lower(),
        producer_id=None if client.last_producer_id == NO_PRODUCER_ID else client.last_producer_id,
        requests=client.requests,
    )


def _api(api: ApiKey, count: RequestCount, rates: SampleRates) -> ApiInfo:
    return ApiInfo(
        api=api_name(api),
        count=count.count,
        requests_per_s=rates.requests_per_s(api, count.count),
        errors=count.errors,
        record_bytes=count.record_bytes,
        total_ms=count.seconds * MS_PER_S,
        p50_ms=count.quantile(0.5) * MS_PER_S,
        p99_ms=count.quantile(0.99) * MS_PER_S,
    )


def _process() -> ProcessInfo:
    """Return what Linux reports about this process in /proc. Other systems have no such files."""
    open_files = resident = None
    with contextlib.suppress(OSError):
        open_files = sum(1 for _ in (PROCESS / "fd").iterdir())
        pages = int((PROCESS / "statm").read_text(encoding="ascii").split()[1])
        resident = pages * os.sysconf("SC_PAGE_SIZE")
    return ProcessInfo(os.getpid(), threading.active_count(), open_files, resident)
