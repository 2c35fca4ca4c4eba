"""Reads the state of brokers through their APIs: brokers, topics, offsets, sizes and producers.

For example, the reader sends ListOffsets requests for the partition orders-0. The responses contain the log
start offset 0, the last stable offset 340 and the high watermark 351. A DescribeLogDirs response contains the
size of the partition. The reader stores these numbers in a `PartitionInfo`. Its list of segments is empty,
because no API describes segments.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from hmb.client.admin import cluster, records, topics
from hmb.client.admin.brokers import Brokers, PartitionResults, raised
from hmb.client.admin.records import OffsetSpec, PartitionProducer
from hmb.client.admin.topics import TopicDescription
from hmb.client.offsets import ListedOffset
from hmb.client.security.settings import ClientSecurity
from hmb.defaults import IsolationLevelName
from hmb.monitoring.remote.fetched import fetched_batch, fetched_batches
from hmb.monitoring.remote.groups import read_groups, read_transactions
from hmb.monitoring.sampling import Sampler, SampleRates
from hmb.monitoring.state import BrokerState, PartitionInfo, ProducerInfo, TopicInfo
from hmb.protocol.enums import NO_OFFSET, ConfigSource, ResourceType
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from hmb.protocol.topics import TopicPartition
from hmb.units import now_ms

MISSING = {
    "segments": "no API describes the segments of a log or the entries of an index",
    "syncs": "no API reports the recovery point, the syncs and the dirty ratio of a log",
    "last_heartbeat": "no API reports when a member has sent its last heartbeat",
    "lag_ms": "no API reports the age of the records that a group has not read",
    "connections": "no API lists the connections of a broker",
    "requests": "no API counts the requests of a broker; Kafka publishes the counts as JMX metrics",
    "events": "no API reports rolls, retention, compaction, recovery and the causes of rebalances",
    "process": "no API reports the version, the start, the threads and the memory of a broker",
}
NO_LEADER = "the partition has no leader"
# Reading a state takes many requests, so each request has a short time limit (seconds; other clients: 30).
REQUEST_TIMEOUT = 10.0
T = TypeVar("T")
Offsets = PartitionResults[ListedOffset]


class RemoteBroker:
    """Reads the state and the batches of a cluster's brokers. Thread-safe: a second thread waits for the first one.

    Each method raises ConnectionFailed if no broker can be reached.
    """

    def __init__(self, servers: str, **keywords: Any) -> None:
        """Store the address. `keywords` are arguments of `hmb.Admin`: `client_id`, `request_timeout`, `security`."""
        security: Mapping[str, str] | ClientSecurity | None = keywords.get("security")
        timeout: float = keywords.get("request_timeout", REQUEST_TIMEOUT)
        self._brokers = Brokers(servers, keywords.get("client_id", "hmb"), timeout, security)
        self._lock = threading.Lock()  # held during each reading, because only one thread may use `_brokers`

    def close(self) -> None:
        with self._lock:
            self._brokers.close()

    def state(self, sampler: Sampler | None = None) -> BrokerState:
        """Return the state that the APIs report now. It contains rates only with a `sampler`. Raises KafkaError."""
        with self._lock:
            missing = dict(MISSING)
            found = cluster.describe_cluster(self._brokers)
            rates = SampleRates() if sampler is None else sampler.rates()
            all_topics = _Topics(self._brokers, missing).read(rates)
            ends = {
                TopicPartition(topic.name, each.partition): each.high_watermark
                for topic in all_topics
                for each in topic.partitions
            }
            groups = attempt(missing, "groups", partial(read_groups, self._brokers, ends, sampler, missing))
            transactions = attempt(missing, "transactions", partial(read_transactions, self._brokers))
        return BrokerState(
            time=now_ms(),
            version=None,
            cluster_id=found.cluster_id,
            node_id=found.controller_id,
            addresses=[f"{broker.host}:{broker.port}" for broker in found.brokers],
            data_dir=None,
            started=None,
            process=None,
            user=None,
            missing=missing,
            topics=all_topics,
            groups=groups or [],
            transactions=transactions or [],
            connections=[],
            requests=[],
            events=[],
        )

    def batches(self, partition: TopicPartition, offset: int) -> dict[str, Any]:
        """Return one row for each batch from `offset` on. Raises KafkaError."""
        with self._lock:
            return fetched_batches(self._brokers, partition, offset)

    def batch(self, partition: TopicPartition, offset: int) -> dict[str, Any]:
        """Return the header, the records and the bytes of the batch that contains `offset`. Raises KafkaError."""
        with self._lock:
            return fetched_batch(self._brokers, partition, offset)

    def offset_of_time(self, partition: TopicPartition, timestamp: int) -> int | None:
        """Return the offset of the first record at or after a time (ms), or None. Raises KafkaError."""
        with self._lock:
            found = raised(records.list_offsets(self._brokers, {partition: timestamp})[partition])
        return None if found.offset < 0 else found.offset


def attempt(missing: dict[str, str], part: str, read: Callable[[], T]) -> T | None:
    """Call the function `read` and return its result. If a broker returns an error, return None.

    After an error, `missing[part]` contains the error message. The text `part` names the part of the state that
    could not be read, for example "configs".
    """
    try:
        return read()
    except KafkaError as error:
        missing[part] = error.message
        return None


class _Topics:
    """Reads the topics of a cluster, with their partitions and their settings.

    If a broker refuses to report something, for example the sizes of partitions, the dict `missing` gets the reason.
    """

    def __init__(self, brokers: Brokers, missing: dict[str, str]) -> None:
        self._brokers = brokers
        self._missing = missing

    def read(self, rates: SampleRates) -> list[TopicInfo]:
        described = [it for it in topics.describe_topics(self._brokers).values() if not isinstance(it, KafkaError)]
        led = [
            TopicPartition(it.name, each.partition) for it in described for each in it.partitions if each.leader >= 0
        ]
        offsets = [self._offsets(led, "earliest"), self._offsets(led, "latest", "read_committed")]
        offsets.append(self._offsets(led, "latest"))
        sizes = attempt(self._missing, "bytes", self._sizes) or {}
        producers = self._producers(led)
        configs = attempt(self._missing, "configs", partial(self._configs, [it.name for it in described])) or {}
        return [
            TopicInfo(
                name=topic.name,
                topic_id=str(topic.topic_id),
                is_internal=topic.is_internal,
                configs=configs.get(topic.name, {}),
                partitions=_partitions(topic, offsets, sizes, producers, rates),
            )
            for topic in sorted(described)
        ]

    def _offsets(
        self, led: list[TopicPartition], spec: OffsetSpec, isolation: IsolationLevelName = "read_uncommitted"
    ) -> Offsets:
        specs = dict.fromkeys(led, spec)
        read = partial(records.list_offsets, self._brokers, specs, isolation_level=isolation)
        return attempt(self._missing, "last stable offset" if isolation == "read_committed" else "offsets", read) or {}

    def _sizes(self) -> dict[TopicPartition, int]:
        """Return the size of each partition. If a partition has several replicas, the largest size is returned."""
        sizes: dict[TopicPartition, int] = {}
        for directories in cluster.describe_log_dirs(self._brokers).values():
            for directory in directories:
                if directory.error is not None:
                    self._missing["bytes"] = directory.error.message
                for partition, replica in directory.replicas.items():
                    sizes[partition] = max(sizes.get(partition, 0), replica.size)
        return sizes

    def _producers(self, led: list[TopicPartition]) -> dict[TopicPartition, list[ProducerInfo]]:
        read = partial(records.describe_producers, self._brokers, led)
        producers = {}
        for partition, answer in (attempt(self._missing, "producers", read) or {}).items():
            if isinstance(answer, KafkaError):
                self._missing["producers"] = answer.message
            else:
                producers[partition] = [_producer(it) for it in answer]
        return producers

    def _configs(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return, for each topic, the settings that differ from the settings of the brokers."""
        asked = DescribeConfigsRequest.DescribeConfigsResource
        wanted = [
            asked(resource_type=ResourceType.TOPIC, resource_name=name, configuration_keys=None) for name in names
        ]
        response: DescribeConfigsResponse = self._brokers.any_broker().send(DescribeConfigsRequest(resources=wanted))
        configs = {}
        for result in response.results:
            if result.error_code:
                self._missing["configs"] = result.error_message or f"error {result.error_code}"
            own = [it for it in result.configs if it.config_source == ConfigSource.DYNAMIC_TOPIC_CONFIG]
            configs[result.resource_name] = {it.name: it.value or "" for it in own}
        return configs


def _producer(it: PartitionProducer) -> ProducerInfo:
    start = it.current_txn_start_offset
    return ProducerInfo(
        producer_id=it.producer_id,
        epoch=it.producer_epoch,
        last_sequence=it.last_sequence,
        last_timestamp=it.last_timestamp,
        transaction_start=None if start == NO_OFFSET else start,
    )


def _partitions(
    topic: TopicDescription,
    offsets: list[Offsets],
    sizes: Mapping[TopicPartition, int],
    producers: Mapping[TopicPartition, list[ProducerInfo]],
    rates: SampleRates,
) -> list[PartitionInfo]:
    partitions = []
    for each in topic.partitions:
        name = TopicPartition(topic.name, each.partition)
        start, stable, high = (_offset(found.get(name)) for found in offsets)
        errors = [it.message for found in offsets if isinstance(it := found.get(name), KafkaError)]
        partitions.append(
            PartitionInfo(
                partition=each.partition,
                leader_epoch=each.leader_epoch,
                log_start_offset=start,
                last_stable_offset=stable,
                high_watermark=high,
                log_end_offset=high,
                recovery_point=None,
                syncs=None,
                dirty_ratio=None,
                records_per_s=rates.records_per_s(name, high),
                bytes=sizes.get(name),
                segments=[],
                producers=producers.get(name, []),
                error=NO_LEADER if each.leader < 0 else next(iter(errors), None),
            )
        )
    return partitions


def _offset(found: ListedOffset | KafkaError | None) -> int:
    return NO_OFFSET if found is None or isinstance(found, KafkaError) else found.offset
