"""The producer: `send` gives a record away and returns at once, with a future for where it went.

Two threads share the work. The caller's picks the partition and queues the record (`accumulator`); the sender's
gathers batches, talks to the brokers and settles the futures (`sender`). `acks` says when a record counts as sent:

     0    when it is on the wire; nobody will know if it got lost
     1    when the partition's leader has it in its log
    -1    when all replicas in sync have it ("all"); the default, and then also written once, not twice

The first contact is tried once, so that a wrong address is an error at once and not after a time-out. Later failures
are retried until `delivery_timeout`. What can never be sent, `send` refuses at once: values that are not bytes, and
records above `max_request_size`, which is Kafka's name and default for it.
"""

import time
from collections.abc import Iterable
from concurrent.futures import Future, wait
from typing import Self

from hmb.client.accumulator import Accumulator, RecordMetadata
from hmb.client.connection import ConnectionFailed
from hmb.client.metadata import Cluster, Topic, TopicPartition
from hmb.client.partitioner import StickyPartitioner, partition_of_key
from hmb.client.sender import MAX_REQUEST_SIZE, Sender
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topic_names import check_topic_name
from hmb.records import RECORD_BATCH_OVERHEAD, Codec, Header, Record
from hmb.records.record import MAX_INT64, NO_TIMESTAMP

RECORD_OVERHEAD = 20  # bytes a record costs in a batch beside its key and value, generously
ACKS = (0, 1, -1)


class Producer:
    """Sends records to topics; thread-safe. Times are in seconds, but for `linger_ms`."""

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str],
        acks: int = -1,
        compression: str = "none",
        linger_ms: float = 5,
        batch_size: int = 16384,
        client_id: str = "hmb",
        *,
        buffer_memory: int = 32 * 1024 * 1024,
        max_request_size: int = MAX_REQUEST_SIZE,
        request_timeout: float = 30.0,
        delivery_timeout: float = 120.0,
        max_block: float = 60.0,
        retry_backoff: float = 0.1,
    ) -> None:
        if acks not in ACKS:
            raise ValueError(f"acks is 0, 1 or -1 (all), not {acks}")
        if compression.upper() not in Codec.__members__:
            raise ValueError(f"compression is one of {', '.join(Codec.__members__).lower()}, not {compression!r}")
        self._max_block, self._retry_backoff = max_block, retry_backoff
        self._max_request_size = max_request_size
        self._trouble: str | None = None
        # The last try may begin right before the delivery timeout; it has to find the leader and to be answered.
        self._patience = delivery_timeout + 2 * request_timeout
        self._cluster = Cluster(bootstrap_servers, client_id, min(request_timeout, delivery_timeout))
        self._sticky = StickyPartitioner(batch_size)
        self._accumulator = Accumulator(batch_size, linger_ms / 1000, buffer_memory)
        self._sender = Sender(
            self._accumulator,
            self._cluster,
            acks=acks,
            codec=Codec[compression.upper()],
            request_timeout=request_timeout,
            delivery_timeout=delivery_timeout,
            retry_backoff=retry_backoff,
        )
        self._sender.start()

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
        timestamp: int | None = None,
    ) -> "Future[RecordMetadata]":
        """Queue a record. Waits for the topic's metadata at first, and while the buffer is full."""
        if timestamp is None:
            timestamp = time.time_ns() // 1_000_000
        record = Record(-1, timestamp, key, value, tuple(headers))
        size = self._checked_size(record)
        if partition is None:
            partitions = len(self._topic(topic).leaders)
            if key is None:
                partition = self._sticky.partition(topic, partitions, size)
            else:
                partition = partition_of_key(key, partitions)
        elif partition not in self._topic(topic).leaders:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic!r} has no partition {partition}")
        return self._accumulator.append(TopicPartition(topic, partition), record, size, self._max_block)

    def flush(self) -> None:
        """Wait until all that was sent before is delivered or given up; the futures say which.

        TimeoutError if the sender is stuck, in a callback of a future for example.
        """
        if wait([batch.futures[-1] for batch in self._accumulator.seal()], self._patience).not_done:
            raise self._stuck()

    def close(self, timeout: float | None = None) -> None:
        """Deliver what is queued, then end; TimeoutError as in `flush`, and then the sender is left to itself.

        With a timeout it waits no longer than that; a program that ends then takes what is still queued with it.
        """
        self._accumulator.close()
        self._sender.join(self._patience if timeout is None else timeout)
        if self._sender.is_alive():
            raise self._stuck() if timeout is None else TimeoutError(f"not all was delivered within {timeout:g} s")
        self._cluster.close()

    @property
    def trouble(self) -> str | None:
        """Why `send` is waiting for a topic's metadata, as far as it is known; from any thread."""
        return self._trouble

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _stuck(self) -> TimeoutError:
        return TimeoutError(f"the producer's thread is stuck: records are on their way for {self._patience:g} s")

    def _checked_size(self, record: Record) -> int:
        """How much of a batch the record takes; TypeError, ValueError or KafkaError for what cannot be sent."""
        key, value = record.key, record.value
        _check_bytes("value", value)
        _check_bytes("key", key)
        if not NO_TIMESTAMP <= record.timestamp <= MAX_INT64:
            raise ValueError(f"the timestamp {record.timestamp} is not milliseconds since 1970 (-1: none)")
        size = RECORD_OVERHEAD + len(key or b"") + len(value or b"")
        if record.headers:
            size += sum(map(_checked_header_size, record.headers))
        if (alone := size + RECORD_BATCH_OVERHEAD) > self._max_request_size:
            what = f"a batch of this record alone has {alone:,} bytes, "
            what += f"which is more than max.request.size, {self._max_request_size:,} bytes: "
            what += "split it, or raise that (max_request_size of hmb.Producer) and the topic's max.message.bytes"
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, what)
        return size

    def _topic(self, name: str) -> Topic:
        """The topic's metadata; a topic that is just being created gets the time it needs."""
        if topic := self._cluster.last_known(name):
            return topic  # the sender sees to it that leaders are right; only their number matters here
        check_topic_name(name)
        deadline = time.monotonic() + self._max_block
        while True:
            try:
                topic = self._cluster.topic(name, create=True)
            except (KafkaError, ConnectionFailed) as error:
                lasting = not (error.code.retriable if isinstance(error, KafkaError) else self._cluster.was_reached)
                if lasting or time.monotonic() >= deadline:
                    raise
                self._trouble = error.message if isinstance(error, KafkaError) else str(error)
            else:
                self._trouble = None
                return topic
            time.sleep(self._retry_backoff)


def _check_bytes(name: str, value: object) -> None:
    if value is not None and not isinstance(value, bytes):
        hint = "; a text has .encode()" if isinstance(value, str) else ""
        raise TypeError(f"{name} is bytes or None, not {type(value).__name__}{hint}")


def _checked_header_size(header: Header) -> int:
    name, value = header
    if not isinstance(name, str):
        raise TypeError(f"the name of a header is a str, not {type(name).__name__}")
    _check_bytes(f"header {name!r}", value)
    return RECORD_OVERHEAD + len(name.encode()) + len(value or b"")
