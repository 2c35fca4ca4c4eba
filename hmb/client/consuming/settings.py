"""The settings of a consumer, each declared once (see `hmb.client.settings`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Annotated, Any, Literal, TypedDict

from hmb.client.offsets import IsolationLevelName, Offset, Until
from hmb.client.settings import Declared, amount, boolean, by_kafka_names, seconds, time_limit
from hmb.protocol.topics import TopicPartition

Pattern = str | re.Pattern[str]
Deserializer = Callable[[bytes], Any]
Callback = Callable[[Collection[TopicPartition]], object]

MAX_POLL_RECORDS = 500  # Kafka's default; larger lists are slower, because they outgrow the processor's caches


def _assignors(text: str) -> tuple[str, ...]:
    """Read names of assignors ("range"), or of Kafka's classes for them ("...RangeAssignor")."""
    names = (name.strip().rpartition(".")[2].removesuffix("Assignor") for name in text.split(","))
    own_names = {"CooperativeSticky": "cooperative-sticky", "RoundRobin": "roundrobin"}
    return tuple(own_names.get(name, name.lower()) for name in names)


class ConsumerSettings(TypedDict, total=False):
    """The keyword arguments of `Consumer`. Times are in seconds unless the name ends in `_ms`; sizes are in bytes."""

    offset: Annotated[Offset, Declared("earliest", "auto.offset.reset", str, "Where to begin.")]
    until: Annotated[Until, Declared(None, "", str, "Where to stop: 'end', an offset or a time; None reads for ever.")]
    partitions: Annotated[Iterable[int] | None, Declared(None, "", str, "Read only these partitions of each topic.")]
    pattern: Annotated[Pattern | None, Declared(None, "", str, "A regular expression for whole names of topics.")]
    exclude: Annotated[Pattern | None, Declared(None, "", str, "A regular expression for topics that are not read.")]
    client_id: Annotated[str, Declared("hmb", "client.id", str, "The name of this client in the broker's logs.")]
    max_wait_ms: Annotated[
        int, Declared(500, "fetch.max.wait.ms", amount, "How long the broker waits for `min_bytes` of records.")
    ]
    min_bytes: Annotated[int, Declared(1, "fetch.min.bytes", amount, "The size at which the broker answers at once.")]
    max_bytes: Annotated[
        int, Declared(16 * 1024 * 1024, "fetch.max.bytes", amount, "The largest response; one batch may be larger.")
    ]
    max_partition_bytes: Annotated[
        int, Declared(1024 * 1024, "max.partition.fetch.bytes", amount, "The largest part for one partition.")
    ]
    max_poll_records: Annotated[
        int, Declared(MAX_POLL_RECORDS, "max.poll.records", amount, "The most records that a poll returns.")
    ]
    request_timeout: Annotated[float, Declared(30.0, "request.timeout.ms", time_limit, "How long a response may take.")]
    retry_for: Annotated[
        float, Declared(30.0, "default.api.timeout.ms", time_limit, "How long a failed request is retried.")
    ]
    metadata_max_age: Annotated[
        float, Declared(300.0, "metadata.max.age.ms", seconds, "How often the consumer looks for new partitions.")
    ]
    wait_for_topics: Annotated[
        bool, Declared(False, "", boolean, "Whether a named topic need not exist yet; it is then read from its start.")
    ]
    isolation_level: Annotated[
        IsolationLevelName,
        Declared("read_uncommitted", "isolation.level", str, "read_committed skips records of open transactions."),
    ]
    check_crcs: Annotated[bool, Declared(True, "check.crcs", boolean, "Whether the CRC of each batch is checked.")]
    key_deserializer: Annotated[Deserializer | None, Declared(None, "", str, "A function from bytes to a key.")]
    value_deserializer: Annotated[Deserializer | None, Declared(None, "", str, "A function from bytes to a value.")]
    group: Annotated[str | None, Declared(None, "group.id", str, "The consumer group to join.")]
    group_instance_id: Annotated[
        str | None, Declared(None, "group.instance.id", str, "The name of a static member (KIP-345).")
    ]
    group_protocol: Annotated[
        Literal["classic", "consumer"], Declared("classic", "group.protocol", str, "classic, or consumer (KIP-848).")
    ]
    assignors: Annotated[
        Iterable[str],
        Declared(
            ("range", "cooperative-sticky"),
            "partition.assignment.strategy",
            _assignors,
            "The assignors of a classic group, the preferred one first.",
        ),
    ]
    remote_assignor: Annotated[
        str | None, Declared(None, "group.remote.assignor", str, "The broker's assignor: uniform or range.")
    ]
    session_timeout: Annotated[
        float, Declared(45.0, "session.timeout.ms", seconds, "The silence after which the group removes this member.")
    ]
    heartbeat_interval: Annotated[
        float, Declared(3.0, "heartbeat.interval.ms", seconds, "The time between two heartbeats.")
    ]
    max_poll_interval: Annotated[
        float, Declared(300.0, "max.poll.interval.ms", seconds, "The time without a poll after which a member leaves.")
    ]
    auto_commit: Annotated[bool, Declared(True, "enable.auto.commit", boolean, "Whether positions are committed.")]
    auto_commit_interval: Annotated[
        float, Declared(5.0, "auto.commit.interval.ms", seconds, "The time between two automatic commits.")
    ]
    on_assigned: Annotated[Callback | None, Declared(None, "", str, "Called with partitions that the group assigns.")]
    on_revoked: Annotated[
        Callback | None, Declared(None, "", str, "Called with partitions before the group takes them away.")
    ]
    on_lost: Annotated[
        Callback | None, Declared(None, "", str, "Called with partitions that already belong to another member.")
    ]


CONSUMER_SETTINGS = by_kafka_names(ConsumerSettings, "key.deserializer", "value.deserializer")
"""The settings of a consumer by Kafka's names."""
