"""The declarations of the settings of a consumer. `hmb.client.settings` explains what a declaration contains."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Annotated, Any, Literal, TypedDict

from hmb.client.offsets import Offset, Until
from hmb.client.settings import (
    METADATA_MAX_AGE,
    REQUEST_TIMEOUT,
    RETRY_FOR,
    ClientId,
    Declared,
    Security,
    amount,
    boolean,
    by_kafka_names,
    seconds,
    time_limit,
)
from hmb.defaults import IsolationLevelName
from hmb.protocol.topics import TopicPartition

Pattern = str | re.Pattern[str]
Deserializer = Callable[[bytes], Any]
Callback = Callable[[Collection[TopicPartition]], object]

MAX_BYTES = 16 * 1024 * 1024
MAX_POLL_RECORDS = 500  # Kafka's default; larger lists are slower, because they do not fit into the processor's caches


def _assignors(text: str) -> tuple[str, ...]:
    """Return the names of assignors in a text such as "range,roundrobin".

    The text may also contain the class names of Kafka's assignors. For example, "...RangeAssignor" becomes "range".
    """
    names = (name.strip().rpartition(".")[2].removesuffix("Assignor") for name in text.split(","))
    own_names = {"CooperativeSticky": "cooperative-sticky", "RoundRobin": "roundrobin"}
    return tuple(own_names.get(name, name.lower()) for name in names)


class ConsumerSettings(TypedDict, total=False):
    """The keyword arguments of `Consumer`. Times are in seconds unless the name ends in `_ms`; sizes are in bytes."""

    offset: Annotated[
        Offset,
        Declared(
            "earliest",
            "auto.offset.reset",
            str,
            "Where reading begins: earliest, latest or another offset. In a group: without committed offset.",
        ),
    ]
    until: Annotated[
        Until,
        Declared(None, "", str, "Where reading ends: 'end' (the end of the log), an offset or a time. None: never."),
    ]
    partitions: Annotated[Iterable[int] | None, Declared(None, "", str, "Read only these partitions of each topic.")]
    pattern: Annotated[
        Pattern | None, Declared(None, "", str, "Read the topics whose whole names match this regular expression.")
    ]
    exclude: Annotated[
        Pattern | None, Declared(None, "", str, "Leave out the topics whose whole names match this regular expression.")
    ]
    client_id: ClientId
    security: Security
    max_wait_ms: Annotated[
        int,
        Declared(500, "fetch.max.wait.ms", amount, "How long the broker waits until it has `min_bytes` of records."),
    ]
    min_bytes: Annotated[
        int,
        Declared(1, "fetch.min.bytes", amount, "With this many bytes of records, the broker answers without waiting."),
    ]
    max_bytes: Annotated[
        int,
        Declared(
            MAX_BYTES,
            "fetch.max.bytes",
            amount,
            "The largest size of a response. Only a response of a single batch can be larger.",
        ),
    ]
    max_partition_bytes: Annotated[
        int,
        Declared(
            1024 * 1024,
            "max.partition.fetch.bytes",
            amount,
            "The largest size of the records of one partition in a response.",
        ),
    ]
    max_poll_records: Annotated[
        int,
        Declared(MAX_POLL_RECORDS, "max.poll.records", amount, "The largest number of records that `poll` returns."),
    ]
    request_timeout: Annotated[
        float,
        Declared(REQUEST_TIMEOUT, "request.timeout.ms", time_limit, "How long the consumer waits for a response."),
    ]
    retry_for: Annotated[
        float,
        Declared(
            RETRY_FOR,
            "default.api.timeout.ms",
            time_limit,
            "How long the consumer repeats a request after temporary errors.",
        ),
    ]
    metadata_max_age: Annotated[
        float,
        Declared(
            METADATA_MAX_AGE,
            "metadata.max.age.ms",
            seconds,
            "After this time, the consumer looks for new topics and partitions again.",
        ),
    ]
    wait_for_topics: Annotated[
        bool,
        Declared(
            False,
            "",
            boolean,
            "Whether the consumer waits for a topic that does not exist yet, and then reads it from its first record.",
        ),
    ]
    isolation_level: Annotated[
        IsolationLevelName,
        Declared(
            "read_uncommitted",
            "isolation.level",
            str,
            "With read_committed, `poll` returns no records of open or aborted transactions.",
        ),
    ]
    check_crcs: Annotated[
        bool, Declared(True, "check.crcs", boolean, "Whether the consumer checks the CRC of each batch.")
    ]
    key_deserializer: Annotated[
        Deserializer | None, Declared(None, "", str, "A function that converts bytes to a key.")
    ]
    value_deserializer: Annotated[
        Deserializer | None, Declared(None, "", str, "A function that converts bytes to a value.")
    ]
    group: Annotated[str | None, Declared(None, "group.id", str, "The consumer group to join.")]
    group_instance_id: Annotated[
        str | None,
        Declared(
            None, "group.instance.id", str, "A name that makes the consumer a static member of the group (KIP-345)."
        ),
    ]
    group_protocol: Annotated[
        Literal["classic", "consumer"],
        Declared("classic", "group.protocol", str, "The protocol of the group: classic, or consumer (KIP-848)."),
    ]
    assignors: Annotated[
        Iterable[str],
        Declared(
            ("range", "cooperative-sticky"),
            "partition.assignment.strategy",
            _assignors,
            "The assignors that a classic group may use, the preferred assignor first.",
        ),
    ]
    remote_assignor: Annotated[
        str | None,
        Declared(
            None, "group.remote.assignor", str, "The assignor that the broker uses for the group: uniform or range."
        ),
    ]
    session_timeout: Annotated[
        float,
        Declared(
            45.0, "session.timeout.ms", seconds, "If no heartbeat arrives for this time, the group removes this member."
        ),
    ]
    heartbeat_interval: Annotated[
        float, Declared(3.0, "heartbeat.interval.ms", seconds, "The time between two heartbeats.")
    ]
    max_poll_interval: Annotated[
        float,
        Declared(
            300.0,
            "max.poll.interval.ms",
            seconds,
            "If the application does not call `poll` for this time, the consumer leaves the group.",
        ),
    ]
    auto_commit: Annotated[
        bool, Declared(True, "enable.auto.commit", boolean, "Whether `poll` commits the positions automatically.")
    ]
    auto_commit_interval: Annotated[
        float, Declared(5.0, "auto.commit.interval.ms", seconds, "The time between two automatic commits.")
    ]
    on_assigned: Annotated[
        Callback | None,
        Declared(None, "", str, "A function that is called with the partitions that the group has assigned."),
    ]
    on_revoked: Annotated[
        Callback | None,
        Declared(None, "", str, "A function that is called with partitions before the consumer gives them up."),
    ]
    on_lost: Annotated[
        Callback | None,
        Declared(None, "", str, "A function that is called with partitions that another member already has."),
    ]


CONSUMER_SETTINGS = by_kafka_names(ConsumerSettings, "key.deserializer", "value.deserializer")
"""The settings of a consumer. The keys are Kafka's names of the settings."""
