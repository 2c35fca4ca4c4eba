"""The declarations of the settings of a producer. `hmb.client.settings` explains what a declaration contains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

from hmb.client.backoff import RETRY_PAUSE
from hmb.client.producing.partitioner import Partitioner
from hmb.client.settings import (
    METADATA_MAX_AGE,
    REQUEST_TIMEOUT,
    ClientId,
    Declared,
    Security,
    amount,
    boolean,
    by_kafka_names,
    integer,
    milliseconds,
    seconds,
    time_limit,
)
from hmb.defaults import Compression
from hmb.protocol.enums import MAX_IN_FLIGHT, Acks

Serializer = Callable[[Any], bytes | None]
AcksSetting = Literal[0, 1, -1, "all"]
# Maps each value that an application can set as `acks` to the member of the enum `Acks`.
ACKS: dict[int | str, Acks] = {acks.value: acks for acks in Acks} | {"all": Acks.ALL}

MAX_REQUEST_SIZE = 1024 * 1024
# HMB's default for `batch_size` is 256 KiB, because larger batches need fewer requests. Kafka's default is 16 KiB. In a
# busy Python program, each request costs about 10 ms. The sender thread makes one system call to send, and one to
# receive. After each call, the thread can wait 5 ms for the interpreter lock.
#
# Measured with one call of `send` for each record of 100 bytes: 120,000 records/s with batches of 16 KiB, 180,000
# records/s with 64 KiB, and 380,000 records/s with 256 KiB. Batches of 1 MiB are not faster than batches of 256 KiB.
BATCH_SIZE = 256 * 1024


def _acks(text: str) -> int | str:
    return text if text == "all" else integer(text)


class ProducerSettings(TypedDict, total=False):
    """The keyword arguments of `Producer`. Times are in seconds unless the name ends in `_ms`; sizes are in bytes."""

    client_id: ClientId
    security: Security
    acks: Annotated[
        AcksSetting,
        Declared(
            Acks.ALL.value,
            "acks",
            _acks,
            "When a record counts as sent. 0: at once. 1: the leader has it. -1 (all): all in-sync replicas have it.",
        ),
    ]
    compression: Annotated[
        Compression, Declared("none", "compression.type", str, "The codec of batches: none, gzip, snappy, lz4 or zstd.")
    ]
    compression_level: Annotated[
        int | None,
        Declared(
            None,
            "compression.gzip.level compression.lz4.level compression.zstd.level",
            integer,
            "The compression level of the codec. A higher level is slower and compresses more.",
        ),
    ]
    linger_ms: Annotated[
        float, Declared(5, "linger.ms", milliseconds, "How long a batch waits for more records before it is sent.")
    ]
    batch_size: Annotated[int, Declared(BATCH_SIZE, "batch.size", amount, "The largest size of a batch.")]
    buffer_memory: Annotated[
        int,
        Declared(
            32 * 1024 * 1024,
            "buffer.memory",
            amount,
            "Memory for records that are not delivered yet. While it is full, `send` waits.",
        ),
    ]
    max_request_size: Annotated[
        int, Declared(MAX_REQUEST_SIZE, "max.request.size", amount, "The largest size of a request, and of a record.")
    ]
    max_in_flight: Annotated[
        int,
        Declared(
            MAX_IN_FLIGHT,
            "max.in.flight.requests.per.connection",
            amount,
            "The limit of batches in flight for each partition. Without idempotence, only 1 keeps them in order.",
        ),
    ]
    request_timeout: Annotated[
        float,
        Declared(REQUEST_TIMEOUT, "request.timeout.ms", time_limit, "How long the producer waits for a response."),
    ]
    delivery_timeout: Annotated[
        float,
        Declared(
            120.0,
            "delivery.timeout.ms",
            time_limit,
            "How long the producer tries to deliver a record before the record fails.",
        ),
    ]
    max_block: Annotated[
        float, Declared(60.0, "max.block.ms", seconds, "The longest time that `send` waits for memory or metadata.")
    ]
    retry_backoff: Annotated[
        float,
        Declared(
            RETRY_PAUSE,
            "retry.backoff.ms",
            seconds,
            "The pause before a retry. It doubles at each further retry, up to one second.",
        ),
    ]
    idempotence: Annotated[
        bool | None,
        Declared(
            None,
            "enable.idempotence",
            boolean,
            "True: each record is written exactly once, or fails. False: a retry may write a record twice. None: "
            "like True if `acks` and the broker allow it, otherwise like False.",
        ),
    ]
    partitioner: Annotated[
        str | Partitioner,
        Declared(
            "murmur2", "", str, "murmur2, hash, random, or a function that takes the key and the number of partitions."
        ),
    ]
    key_serializer: Annotated[Serializer | None, Declared(None, "", str, "A function that converts a key to bytes.")]
    value_serializer: Annotated[
        Serializer | None, Declared(None, "", str, "A function that converts a value to bytes.")
    ]
    transactional_id: Annotated[
        str | None,
        Declared(
            None,
            "transactional.id",
            str,
            "The name of this producer in transactions. After a restart, the producer uses the same name.",
        ),
    ]
    transaction_timeout: Annotated[
        float,
        Declared(
            60.0,
            "transaction.timeout.ms",
            time_limit,
            "The coordinator aborts a transaction that is open for longer than this time.",
        ),
    ]
    metadata_max_age: Annotated[
        float,
        Declared(
            METADATA_MAX_AGE,
            "metadata.max.age.ms",
            seconds,
            "The producer requests topic metadata again when it is older than this time.",
        ),
    ]


PRODUCER_SETTINGS = by_kafka_names(ProducerSettings, "key.serializer", "value.serializer")
"""The settings of a producer. The keys are Kafka's names of the settings."""
