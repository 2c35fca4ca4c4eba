"""The state of a running broker, as plain data.

A `BrokerState` contains what the broker knows about itself at one moment. Examples are topics with their
segments, groups with their lag, open transactions, and connections. Whenever a program requests the state,
`collect` (in collecting.py) creates a new `BrokerState`. `hmb state --json` prints the state, and `hmb top`
shows it. `metrics.py` converts the state to metrics for Prometheus.

In the classes of this module, all times are in ms since 1970, and all sizes are in bytes, unless a comment names
another unit. `as_json` returns the fields of these classes as dicts and lists, so the classes also document the JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """One segment of a partition's log."""

    base_offset: int
    bytes: int  # size of the .log file
    offset_index_entries: int
    time_index_entries: int
    # None means unknown: the segment already contained batches when the broker opened it, and the broker has not
    # rebuilt the segment's indexes since then.
    batches: int | None
    first_timestamp: int | None  # greatest timestamp of the first batch; None if the segment has no batch
    max_timestamp: int | None
    is_active: bool  # whether the log appends to this segment


@dataclass(frozen=True, slots=True)
class ProducerInfo:
    """The state of an idempotent or transactional producer in a partition."""

    producer_id: int
    epoch: int
    last_sequence: int  # -1 if the partition has no batch of this producer
    last_timestamp: int  # timestamp (ms) of the producer's last batch or marker
    transaction_start: int | None  # first offset of the open transaction; None if no transaction is open


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """One partition: its offsets, its segments and its producers."""

    partition: int
    leader_epoch: int
    log_start_offset: int
    last_stable_offset: int
    high_watermark: int
    log_end_offset: int  # All four offsets are -1 if the leader of the partition does not answer.
    recovery_point: int | None  # all records at lower offsets are on disk
    syncs: int | None  # number of syncs since the broker started
    dirty_ratio: float | None  # share of bytes that compaction has not read yet; None if the topic is not compacted
    records_per_s: float | None  # over the last minute; None if the broker takes no samples (see sampling.py)
    bytes: int | None
    segments: list[SegmentInfo]
    producers: list[ProducerInfo]
    error: str | None  # the reason why the partition refuses records; None if it accepts them


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """One topic, with all its partitions."""

    name: str
    topic_id: str
    is_internal: bool
    configs: dict[str, str]  # only the settings that differ from the broker's settings
    partitions: list[PartitionInfo]


@dataclass(frozen=True, slots=True)
class PositionInfo:
    """The position of a group in one partition, and its distance to the log's end.

    The position of a share group is the start offset of its share-partition.
    """

    topic: str
    partition: int
    committed_offset: int
    lag: int | None  # records; None if the partition does not exist any more
    lag_ms: int | None  # age (ms) of the oldest unread batch at the last full second; 0 if `lag` is 0; None if unknown


@dataclass(frozen=True, slots=True)
class GroupMemberInfo:
    """One member of a group. `instance_id` is the id of a static member (KIP-345), or None."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    last_heartbeat: int | None  # time of the last heartbeat, rounded to a second; None if it is unknown
    partitions: list[str]  # for example "orders-3"


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """A group of clients that read the same topics together. `type` is the group's protocol."""

    group_id: str
    type: str  # "classic", "consumer" (KIP-848), "share" (KIP-932) or "streams" (KIP-1071)
    protocol_type: str
    state: str  # Kafka's name of the state, for example "Stable"
    members: list[GroupMemberInfo]
    positions: list[PositionInfo]
    lags: list[list[int]]  # [time, sum of the lags] of the last five minutes; empty if the broker takes no samples


@dataclass(frozen=True, slots=True)
class TransactionInfo:
    """One transactional id, and the state of its last transaction."""

    transactional_id: str
    producer_id: int
    epoch: int
    state: str
    started: int | None  # None if no transaction is open
    timeout_ms: int
    partitions: list[str]


@dataclass(frozen=True, slots=True)
class ConnectionInfo:
    """One open connection of a client."""

    client: str  # host:port
    client_id: str | None  # from the client's last request; None before the first request
    software: str | None  # name and version from ApiVersions, for example "apache-kafka-java 4.3.0"
    last_api: str | None  # API of the client's last request
    # The compression of the last record batch from this client. None if the client has produced no batch.
    codec: str | None
    producer_id: int | None  # the id in the client's last record batch; None if the producer is not idempotent
    requests: int  # requests that the broker has received on this connection


@dataclass(frozen=True, slots=True)
class ApiInfo:
    """The requests of one API since the start of the broker."""

    api: str
    count: int
    requests_per_s: float | None  # over the last minute; None if the broker takes no samples
    errors: int  # requests whose response contains an error code
    record_bytes: int  # bytes of records in Produce requests and in Fetch responses
    # The total time of all requests: from the start of the handler until the response is ready, including waiting time.
    total_ms: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class EventInfo:
    """Something that happened in the broker, for example a rebalance or a deleted segment."""

    number: int  # 0 for the first event after the start of the broker
    time: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """The process in which the broker runs."""

    pid: int
    threads: int
    open_files: int | None  # None if the operating system does not report it
    resident_bytes: int | None


@dataclass(frozen=True, slots=True)
class BrokerState:
    """The state of one broker, or the part of it that a user may see.

    `missing` maps the name of each incomplete part to the reason. For example, Kafka's own APIs do not return
    segments. A state that was read with these APIs contains no segments, so `missing` contains "segments".
    """

    time: int
    version: str | None  # the version of HMB
    cluster_id: str | None
    node_id: int
    addresses: list[str]  # host:port of each listener
    data_dir: str | None
    started: int | None
    process: ProcessInfo | None
    user: str | None  # the user who logged in over HTTP to read the state; None if no user logged in
    missing: dict[str, str]
    topics: list[TopicInfo]
    groups: list[GroupInfo]
    transactions: list[TransactionInfo]
    connections: list[ConnectionInfo]
    requests: list[ApiInfo]
    events: list[EventInfo]  # oldest first


def fields_of(part: Any) -> dict[str, Any]:
    """Return the fields of `part`, an instance of one of the dataclasses of this module.

    `json.dumps(state, default=fields_of)` calls this function for each dataclass instance in the state. With
    `json.dumps(as_json(state))`, the work would take four times as long, because `as_json` also copies each list.
    """
    return {name: getattr(part, name) for name in part.__dataclass_fields__}


def as_json(value: Any) -> Any:
    """Return a state, or a part of a state, as dicts, lists, texts and numbers."""
    if is_dataclass(value):
        return {name: as_json(each) for name, each in fields_of(value).items()}
    if isinstance(value, list):
        return [as_json(each) for each in value]
    if isinstance(value, dict):
        return {name: as_json(each) for name, each in value.items()}
    return value
