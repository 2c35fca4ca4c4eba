"""The producer: `send` gives a record away and returns at once, with a future for where it went.

Two threads share the work. The caller's picks the partition and queues the record (`accumulator`); the sender's
gathers batches, talks to the brokers and settles the futures (`sender`). `acks` says when a record counts as sent:

     0    when it is on the wire; nobody will know if it got lost
     1    when the partition's leader has it in its log
    -1    when all replicas in sync have it ("all"); the default, and then also written once, not twice

The first contact is tried once, so that a wrong address is an error at once and not after a time-out. Later failures
are retried until `delivery_timeout`.
"""

import time
from collections.abc import Iterable
from concurrent.futures import Future, wait
from typing import Self

from hmb.client.accumulator import Accumulator, RecordMetadata
from hmb.client.connection import ConnectionFailed
from hmb.client.metadata import Cluster, Topic, TopicPartition
from hmb.client.partitioner import StickyPartitioner, partition_of_key
from hmb.client.sender import Sender
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import Codec, Record

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
        size = RECORD_OVERHEAD + len(key or b"") + len(value or b"")
        if record.headers:
            size += sum(RECORD_OVERHEAD + len(name) + len(header or b"") for name, header in record.headers)
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

    def close(self) -> None:
        """Deliver what is queued, then end; TimeoutError as in `flush`, and then the sender is left to itself."""
        self._accumulator.close()
        self._sender.join(self._patience)
        if self._sender.is_alive():
            raise self._stuck()
        self._cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _stuck(self) -> TimeoutError:
        return TimeoutError(f"the producer's thread is stuck: records are on their way for {self._patience:g} s")

    def _topic(self, name: str) -> Topic:
        """The topic's metadata; a topic that is just being created gets the time it needs."""
        if topic := self._cluster.last_known(name):
            return topic  # the sender sees to it that leaders are right; only their number matters here
        deadline = time.monotonic() + self._max_block
        while True:
            try:
                return self._cluster.topic(name, create=True)
            except (KafkaError, ConnectionFailed) as error:
                lasting = not (error.code.retriable if isinstance(error, KafkaError) else self._cluster.was_reached)
                if lasting or time.monotonic() >= deadline:
                    raise
            time.sleep(self._retry_backoff)
