"""The settings of a producer, each declared once (see `hmb.client.settings`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

from hmb.client.producing.partitioner import Partitioner
from hmb.client.settings import Declared, amount, boolean, by_kafka_names, integer, milliseconds, seconds, time_limit

Serializer = Callable[[Any], bytes | None]
AcksSetting = Literal[0, 1, -1, "all"]
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]

# A broker remembers the last five batches of an idempotent producer (see `idempotence`).
MAX_IN_FLIGHT = 5
MAX_REQUEST_SIZE = 1024 * 1024
# Kafka's default is 16 KiB. In Python a request costs about 10 ms while the program is busy, whatever its size, because
# a thread that returns from a system call may wait 5 ms for the interpreter lock. Sends of 100 B records, one by one,
# reach 120,000/s with batches of 16 KiB, 180,000/s with 64 KiB, and 380,000/s with 256 KiB. 1 MiB is no faster.
BATCH_SIZE = 256 * 1024


def _acks(text: str) -> int | str:
    return text if text == "all" else integer(text)


class ProducerSettings(TypedDict, total=False):
    """The keyword arguments of `Producer`. Times are in seconds unless the name ends in `_ms`; sizes are in bytes."""

    client_id: Annotated[str, Declared("hmb", "client.id", str, "The name of this client in the broker's logs.")]
    acks: Annotated[
        AcksSetting, Declared(-1, "acks", _acks, "Who must have a record before it counts as sent: 0, 1 or -1 (all).")
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
            "The level of the codec, from fast to small.",
        ),
    ]
    linger_ms: Annotated[float, Declared(5, "linger.ms", milliseconds, "How long a batch waits for more records.")]
    batch_size: Annotated[int, Declared(BATCH_SIZE, "batch.size", amount, "The largest size of a batch.")]
    buffer_memory: Annotated[
        int, Declared(32 * 1024 * 1024, "buffer.memory", amount, "Memory for queued records. Above it `send` waits.")
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
            "Batches of one partition in flight. Without idempotence only 1 keeps their order.",
        ),
    ]
    request_timeout: Annotated[float, Declared(30.0, "request.timeout.ms", time_limit, "How long a response may take.")]
    delivery_timeout: Annotated[
        float, Declared(120.0, "delivery.timeout.ms", time_limit, "How long a record is retried before it fails.")
    ]
    max_block: Annotated[float, Declared(60.0, "max.block.ms", seconds, "How long `send` waits at most.")]
    retry_backoff: Annotated[
        float, Declared(0.1, "retry.backoff.ms", seconds, "The pause before a retry; it doubles up to one second.")
    ]
    idempotence: Annotated[
        bool | None,
        Declared(
            None,
            "enable.idempotence",
            boolean,
            "True writes each record exactly once or fails. False may repeat records. None is True where possible.",
        ),
    ]
    partitioner: Annotated[
        str | Partitioner,
        Declared("murmur2", "", str, "murmur2, hash, random, or a function of key and number of partitions."),
    ]
    key_serializer: Annotated[Serializer | None, Declared(None, "", str, "A function from a key to bytes.")]
    value_serializer: Annotated[Serializer | None, Declared(None, "", str, "A function from a value to bytes.")]
    transactional_id: Annotated[
        str | None, Declared(None, "transactional.id", str, "A name for transactions that outlives this producer.")
    ]
    transaction_timeout: Annotated[
        float,
        Declared(60.0, "transaction.timeout.ms", time_limit, "The age at which the coordinator aborts a transaction."),
    ]
    metadata_max_age: Annotated[
        float, Declared(300.0, "metadata.max.age.ms", seconds, "The age at which topic metadata is requested again.")
    ]


PRODUCER_SETTINGS = by_kafka_names(ProducerSettings, "key.serializer", "value.serializer")
"""The settings of a producer by Kafka's names."""
