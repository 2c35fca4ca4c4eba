"""The producer: an application calls `send` with a record, and gets a `Delivery`, which later contains the result.

`send` chooses the partition, encodes the record and adds it to a batch (module `accumulator`). `send` does not
wait until the record is sent. The producer's own threads send the batches to the brokers and report the results
(module `sender`). The setting `acks` determines when a record counts as delivered:
    acks=0    when the producer has written the record to its socket; the producer does not notice a lost record
    acks=1    when the partition's leader has written the record to its log
    acks=-1   when all in-sync replicas have the record; "all" is another name for -1

The default is acks=-1. The producer is then idempotent by default: each record is written only once, even if
the producer sends it again. Brokers before Kafka 0.11 do not support this: they can write such a record twice.

Kafka 0.7 had a synchronous and an asynchronous producer (Kafka 0.7 design, "Producer"). HMB has one producer for both.
`send(...)` is asynchronous: it does not wait for the broker. `send(...).result()` is synchronous: it waits for the
broker. If a thread waits for the result of a record, the producer sends the record's batch immediately.

If the producer has never reached a broker, a failed connection causes an error immediately, because the address
is probably wrong. After the producer has reached a broker, it repeats requests that fail with a temporary
error. It repeats a request for metadata for up to `max_block` seconds, and a batch for up to `delivery_timeout`
seconds. If a record can never be sent, for example because it is larger than `max_request_size`, `send` itself
raises the error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self, Unpack, cast

from hmb.client.connection import ConnectionFailed
from hmb.client.group.interface import GroupMetadata, Offsets
from hmb.client.metadata import Cluster, TopicMetadata, no_such_partition
from hmb.client.producing.accumulator import Accumulator
from hmb.client.producing.columns import Column, columns
from hmb.client.producing.completion import BatchCompletion
from hmb.client.producing.delivery import BatchSlice, Deliveries, Delivery
from hmb.client.producing.encoding import Encoding
from hmb.client.producing.idempotence import AtLeastOnce, Idempotence
from hmb.client.producing.metrics import ProducerMetrics
from hmb.client.producing.partitioner import by_murmur2, partitioner_of
from hmb.client.producing.record_checks import ESTIMATED_OVERHEAD, check_timestamp, checked_size
from hmb.client.producing.sender import LeaderRouter
from hmb.client.producing.settings import ACKS, ProducerSettings
from hmb.client.producing.transactions.manager import TransactionManager
from hmb.client.retries import with_retries
from hmb.client.settings import shows_settings, with_defaults
from hmb.protocol.enums import MAX_IN_FLIGHT, Acks
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import check_topic_name
from hmb.records import RECORD_BATCH_OVERHEAD, Codec, Header


class Producer:
    """A client that sends records to topics.

    Several threads may use the same producer. A producer is a context manager: at the end of the `with` block, the
    producer is closed.

    `ProducerSettings` declares the keyword arguments. `help(hmb.Producer)` shows them with their defaults.
    """

    _last_error: str | None = None

    @shows_settings(ProducerSettings)
    def __init__(self, bootstrap_servers: str | Iterable[str], **settings: Unpack[ProducerSettings]) -> None:
        """Create a producer. `bootstrap_servers` is a text such as "host:port,host:port", or a list of addresses.

        Raises TypeError or ValueError if a setting is not valid.
        """
        chosen = cast(ProducerSettings, with_defaults(ProducerSettings, settings, "Producer"))
        self._max_block, self._retry_backoff = chosen["max_block"], chosen["retry_backoff"]
        self._max_request_size = chosen["max_request_size"]
        self._partitioner = partitioner_of(chosen["partitioner"])
        self._key_serializer, self._value_serializer = chosen["key_serializer"], chosen["value_serializer"]
        # `flush` and `close` wait longer than the delivery timeout, because the last attempt to send a batch can begin
        # just before this timeout ends. The attempt can need two requests: one finds the leader, one sends the batch.
        self._close_timeout = chosen["delivery_timeout"] + 2 * chosen["request_timeout"]
        _check_settings(chosen)
        encoding = _encoding(chosen)
        timeout = min(chosen["request_timeout"], chosen["delivery_timeout"])
        max_age, security = chosen["metadata_max_age"], chosen["security"]
        self._cluster = Cluster(
            bootstrap_servers, chosen["client_id"], timeout, metadata_max_age=max_age, security=security
        )
        guarantee = _guarantee(self._cluster, chosen)
        self._transactions = guarantee if isinstance(guarantee, TransactionManager) else None
        size = min(chosen["batch_size"], chosen["max_request_size"])
        memory, linger = chosen["buffer_memory"], chosen["linger_ms"] / 1000
        self._accumulator = Accumulator(size, linger, memory, chosen["max_block"])
        self._completion = BatchCompletion(self._accumulator, self._cluster, chosen, guarantee)
        self._router = LeaderRouter(
            self._accumulator, self._cluster, chosen, encoding, guarantee, self._completion
        )
        self._router.start()

    def send(
        self,
        topic: str,
        value: Any,
        key: Any = None,
        partition: int | None = None,
        headers: Iterable[Header] = (),
        timestamp: int | None = None,
        on_delivery: Callable[[Delivery], object] | None = None,
    ) -> Delivery:
        """Add a record to a batch, and return the record's delivery. A producer thread sends the batch later.

        `value` and `key` are bytes or None, unless the producer has serializers. `timestamp` is in ms since 1970; the
        default is the current time. When the result is known, the producer calls `on_delivery` with the delivery.

        The first call for a topic waits for the topic's metadata. Any call waits while the buffer is full. The time
        limit of each wait is `max_block` seconds.

        Raises one of these errors:

        - TypeError or ValueError if an argument is invalid.
        - KafkaError if the record cannot be sent, for example because it is too large.
        - TimeoutError if the buffer stays full.
        - ConnectionFailed if no broker answers.
        - RuntimeError if the producer is closed.
        """
        if self._value_serializer is not None:
            value = self._value_serializer(value)
        if self._key_serializer is not None:
            key = self._key_serializer(key)
        headers = tuple(headers)
        size = checked_size(key, value, headers)
        self._check_largest(size)
        if timestamp is None:
            timestamp = time.time_ns() // 1_000_000
        else:
            check_timestamp(timestamp)
        if self._transactions is not None:
            self._transactions.check_sending()
        metadata = self._metadata_of(topic, partition)
        partitions = len(metadata.leaders)
        if partition is None:
            partition = self._partitioner(key, partitions)
            if partition is not None and partition not in metadata.leaders:
                raise no_such_partition(metadata, partition)
        delivery = self._accumulator.append(topic, partition, partitions, size, timestamp, key, value, headers)
        if on_delivery is not None:
            delivery.add_done_callback(on_delivery)
        return delivery

    def send_many(
        self,
        topic: str,
        values: Column,
        keys: Column | None = None,
        partition: int | None = None,
        headers: Sequence[Iterable[Header]] | None = None,
        timestamps: Sequence[int] | None = None,
    ) -> Deliveries:
        """Add many records to batches, and return their deliveries. A producer thread sends the batches later.

        `values` and `keys` are lists of bytes and None, or Arrow columns of type binary or string. The method does not
        call the producer's serializers.

        The method is several times faster than `send` under two conditions: (1) Each record has only a value, and no
        value is None. (2) The call passes `partition`, or the producer uses the default partitioner.

        Raises the same errors as `send`. The method checks and adds at most 4,096 records at a time. After an error,
        the producer still sends the records that are already in batches. The message of a KafkaError or TimeoutError
        contains the number of these records.
        """
        if self._transactions is not None:
            self._transactions.check_sending()
        partitions = len(self._metadata_of(topic, partition).leaders)
        slices: list[BatchSlice] = []
        queued = 0
        for some in columns(values, keys, headers, timestamps):
            now = time.time_ns() // 1_000_000
            try:
                if some.are_plain and (partition is not None or self._partitioner is by_murmur2):
                    plain = cast(Sequence[bytes], some.values)
                    self._check_largest(ESTIMATED_OVERHEAD + max(map(len, plain)))
                    self._accumulator.append_values(topic, partition, partitions, now, plain, queued, slices)
                else:
                    rows = some.rows(now, partition, self._partitioner, partitions)
                    self._check_largest(max(row.size for row in rows))
                    self._accumulator.append_rows(topic, partitions, rows, queued, slices)
            except (KafkaError, TimeoutError) as error:
                raise _with_count(error, sum(len(piece.rows) for piece in slices), len(values)) from error
            queued += len(some.values)
        return Deliveries(slices)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all records that were sent before this call are delivered or have failed.

        Raises TimeoutError after `timeout` seconds. Without `timeout`, the limit is `delivery_timeout` plus two times
        `request_timeout`. Each record is delivered or fails before this limit. So without `timeout`, the method raises
        TimeoutError only if a callback of the application blocks a sender thread.
        """
        deadline = time.monotonic() + (self._close_timeout if timeout is None else timeout)
        # The last batch usually completes last, so the loop waits for this batch first. The other batches are then
        # usually complete, and the loop does not wait for them.
        for result in reversed(self._accumulator.seal()):
            if not result.wait_for_callbacks(max(0.0, deadline - time.monotonic())):
                raise self._stuck(timeout)

    def close(self, timeout: float | None = None) -> None:
        """Deliver all records that are not delivered yet, and end the producer's threads.

        If this takes longer than `timeout` seconds, the remaining records fail, and the method raises TimeoutError. The
        method does not end an open transaction. After `transaction_timeout`, the coordinator aborts this transaction.
        """
        self._accumulator.close()
        self._router.join(self._close_timeout if timeout is None else timeout)
        in_time = not self._router.is_alive()
        if self._transactions is not None:
            self._transactions.close()
        self._cluster.close()
        if not in_time:
            error = self._stuck(timeout)
            self._router.interrupt()
            self._accumulator.abandon(error)
            raise error

    def init_transactions(self) -> None:
        """Register the transactional id at its coordinator. Call this method once, before the first transaction.

        After this call, brokers reject the requests of older producers with the same transactional id.
        """
        self._with_transactions().initialize()

    def begin_transaction(self) -> None:
        """Begin a transaction. All records that are sent before the commit or abort belong to the transaction.

        Consumers with `read_committed` receive these records only after a commit of the transaction.
        """
        self._with_transactions().begin()

    def commit_transaction(self) -> None:
        """Wait until all records of the transaction are delivered, and commit the transaction.

        Raises KafkaError if a record was not delivered. The application can then only abort the transaction.
        """
        self._with_transactions().commit(self.flush)

    def abort_transaction(self) -> None:
        """Abort the transaction. Consumers with `read_committed` never receive the records of the transaction."""
        self._with_transactions().abort(self.flush)

    def send_offsets_to_transaction(self, offsets: Offsets, group: GroupMetadata | str) -> None:
        """Add offsets of a consumer group to the transaction. The commit of the transaction also commits these offsets.

        Pass `consumer.group_metadata` as `group`. If the group has no members, the group id is enough.
        """
        self._with_transactions().send_offsets(offsets, group)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a `with` block in one transaction.

        At the end of the block, commit the transaction. If the block raises an exception, abort the transaction.
        """
        self.begin_transaction()
        try:
            yield
            self.commit_transaction()
        except BaseException:
            if self._with_transactions().can_abort:
                self.abort_transaction()
            raise

    def _with_transactions(self) -> TransactionManager:
        if self._transactions is None:
            raise ValueError("this producer has no transactional_id")
        return self._transactions

    def metrics(self) -> ProducerMetrics:
        """Return the metrics of this producer since its creation, for example `records_delivered`."""
        return self._accumulator.counters.snapshot(self._accumulator.used)

    @property
    def last_error(self) -> str | None:
        """The reason why records are not delivered at the moment, or None if no error is known."""
        return self._last_error or self._completion.last_error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _stuck(self, timeout: float | None) -> TimeoutError:
        if timeout is not None:
            return TimeoutError(f"not all records were delivered within {timeout:g} s")
        return TimeoutError(
            f"the producer's thread is stuck: records have been in flight for {self._close_timeout:g} s"
        )

    def _check_largest(self, size: int) -> None:
        """Raise KafkaError if a record of `size` bytes is too large for a request."""
        if (alone := size + RECORD_BATCH_OVERHEAD) > self._max_request_size:
            what = f"a batch of this record alone has {alone:,} bytes, "
            what += f"which is more than max.request.size, {self._max_request_size:,} bytes: "
            what += "split it, or raise that (max_request_size of hmb.Producer) and the topic's max.message.bytes"
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, what)

    def _metadata_of(self, name: str, partition: int | None) -> TopicMetadata:
        """Return the metadata of a topic. If the topic or `partition` is unknown, request the metadata from a broker.

        The metadata may be outdated. This is enough for the caller, which needs only the number of partitions: this
        number rarely changes. `LeaderRouter` finds the leaders.
        """
        topic = self._cluster.last_known(name) or self._topic(name)
        if partition is not None and partition not in topic.leaders:
            self._cluster.forget(name)  # The topic may have got new partitions after the last metadata request.
            topic = self._topic(name)
            if partition not in topic.leaders:
                raise no_such_partition(topic, partition)
        return topic

    def _topic(self, name: str) -> TopicMetadata:
        """Request the metadata of a topic, and return it.

        After a temporary error, for example while the broker is creating the topic, repeat the request for at most
        `max_block` seconds.
        """
        check_topic_name(name)

        def attempt() -> TopicMetadata:
            self._accumulator.check_open()
            return self._cluster.topic(name, create=True)

        def retry_for(error: ConnectionFailed | KafkaError) -> float:
            can_retry = error.code.retriable if isinstance(error, KafkaError) else self._cluster.was_reached
            return self._max_block if can_retry else 0.0

        def wait(error: ConnectionFailed | KafkaError) -> None:
            self._last_error = error.message if isinstance(error, KafkaError) else str(error)
            time.sleep(self._retry_backoff)

        topic = with_retries(attempt, retry_for, wait)
        self._last_error = None
        return topic


def _check_settings(settings: ProducerSettings) -> None:
    """Raise ValueError if `acks` or `max_in_flight` is not valid, or does not fit the other settings."""
    _check_acks(settings)
    max_in_flight = settings["max_in_flight"]
    if max_in_flight < 1:
        raise ValueError(f"max_in_flight must be at least 1, not {max_in_flight}")
    if _is_idempotent(settings) and max_in_flight > MAX_IN_FLIGHT:
        what = f"with idempotence, max_in_flight must be at most {MAX_IN_FLIGHT}, not {max_in_flight}"
        why = "because a broker remembers only this number of batches of a producer"
        raise ValueError(f"{what}, {why}; choose a lower number, or set idempotence=False")


def _encoding(settings: ProducerSettings) -> Encoding:
    """Return the settings for encoding batches. Raises ValueError if the codec or the level is not valid."""
    is_transactional = settings["transactional_id"] is not None
    return Encoding(_codec(settings["compression"]), settings["compression_level"], is_transactional)


def _guarantee(cluster: Cluster, settings: ProducerSettings) -> AtLeastOnce:
    transactional_id = settings["transactional_id"]
    if transactional_id is not None:
        times = (settings["transaction_timeout"], settings["max_block"], settings["retry_backoff"])
        return TransactionManager(cluster, transactional_id, *times)
    return Idempotence(required=bool(settings["idempotence"])) if _is_idempotent(settings) else AtLeastOnce()


def _is_idempotent(settings: ProducerSettings) -> bool:
    return ACKS[settings["acks"]] is Acks.ALL and settings["idempotence"] is not False


def _codec(compression: str) -> Codec:
    if compression.upper() not in Codec.__members__:
        raise ValueError(f"compression must be one of {', '.join(Codec.__members__).lower()}, not {compression!r}")
    return Codec[compression.upper()]


def _check_acks(settings: ProducerSettings) -> None:
    acks, transactional_id = settings["acks"], settings["transactional_id"]
    if acks not in ACKS:
        raise ValueError(f"acks must be 0, 1 or -1 (all), not {acks!r}")
    if (settings["idempotence"] or transactional_id is not None) and ACKS[acks] is not Acks.ALL:
        what = "idempotence needs" if transactional_id is None else "transactions need"
        raise ValueError(f"{what} acks=-1 (all), not {acks}")
    if transactional_id is not None and settings["idempotence"] is False:
        raise ValueError("transactions need idempotence")


def _with_count(error: KafkaError | TimeoutError, queued: int, count: int) -> Exception:
    """Return the error with a message that also says how many records were added to the queues.

    For example, an application sends 100 records with one call, and the producer adds 30 of them to its queues
    before the error. `queued` is 30, and `count` is 100. The message begins with "30 of 100 records were added".
    """
    if isinstance(error, KafkaError):
        return KafkaError(
            error.code, f"{queued} of {count} records were added before this error: {error.message}"
        )
    return TimeoutError(f"{queued} of {count} records were added before this error: {error}")
