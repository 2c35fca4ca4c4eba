"""The producer: `send` gives a record away and returns at once, with a `Delivery` that tells what became of it.

The caller's thread picks the partition, encodes the record and queues it (`accumulator`); threads of the producer's own
gather batches, talk to the brokers and settle the deliveries (`sender`). `acks` says when a record counts as sent:

     0    when it is on the wire; nobody will know if it got lost
     1    when the partition's leader has it in its log
    -1    when all replicas in sync have it ("all"); the default, and then also written once, not twice

Kafka 0.7 had two producers, one synchronous and one asynchronous. Here `send(...)` is the asynchronous one, and
`send(...).result()` the other: whoever waits for a record lets its batch go at once.

The first contact is tried once, so that a wrong address is an error at once and not after a time-out. Later failures
are retried until `delivery_timeout`. What can never be sent, `send` refuses at once: values that are not bytes, and
records above `max_request_size`, which is Kafka's name and default for it.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self, cast

from hmb.client.connection import ConnectionFailed
from hmb.client.group.interface import GroupMetadata
from hmb.client.metadata import METADATA_MAX_AGE, Cluster, Topic, no_such_partition
from hmb.client.producing.accumulator import Accumulator
from hmb.client.producing.columns import Column, columns
from hmb.client.producing.completion import Completion, Settings
from hmb.client.producing.delivery import Deliveries, Delivery, Part
from hmb.client.producing.encoding import Encoding
from hmb.client.producing.idempotence import MOST_IN_FLIGHT, Identities, ProducerId
from hmb.client.producing.metrics import ProducerMetrics
from hmb.client.producing.partitioner import Partitioner, by_murmur2, partitioner_of
from hmb.client.producing.record_checks import RECORD_OVERHEAD, check_timestamp, checked_size
from hmb.client.producing.sender import Router
from hmb.client.producing.transactions import Offsets, Transactions
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import check_topic_name
from hmb.records import RECORD_BATCH_OVERHEAD, Codec, Header

MAX_REQUEST_SIZE = 1024 * 1024  # bytes of records, as long as one batch alone is not larger
# Kafka's default is 16 KB. Here a request costs some 10 ms while the program is busy, however small it is, for a thread
# that comes back from a system call may wait 5 ms for Python's interpreter lock. Sends of 100 B a second, one by one:
# 120,000 in batches of 16 KB, 180,000 of 64 KB, 380,000 of 256 KB, and no more than that of 1 MB.
BATCH_SIZE = 256 * 1024
ALL = -1
ACKS: dict[int | str, int] = {0: 0, 1: 1, -1: ALL, "all": ALL}

Serializer = Callable[[Any], bytes | None]


class Producer:
    """Sends records to topics; thread-safe, and a context manager.

    Times are in seconds (`linger_ms` excepted), sizes in bytes; Kafka's names for the settings, without `.ms`:

    bootstrap_servers    "host:port,host:port" or a list: any brokers of the cluster
    acks                 0, 1 or -1 ("all"): who must have a record before it counts as sent
    compression          of batches: none, gzip, snappy, lz4 or zstd; `compression_level` from fast to small
    linger_ms            how long a batch waits for more records
    batch_size           of records of one partition that go together, at most
    buffer_memory        of records on their way; above it `send` waits
    max_request_size     of a request, and so of a record
    max_in_flight        batches of a partition under way; only 1 keeps their order, or idempotence, with 5 at most
    request_timeout      how long an answer may take
    delivery_timeout     how long a record is tried to be delivered
    max_block            how long `send` waits for metadata or memory
    retry_backoff        before a batch is sent again; twice as long each time, up to a second
    idempotence          True: each record is written once, or fail; False: no; None: where acks and broker allow for it
    partitioner          murmur2, hash, random, or a function (see `partitioner`)
    key_serializer, value_serializer    functions to bytes; else keys and values are bytes or None
    transactional_id     a name for transactions, which outlives this producer (see `transactions`)
    transaction_timeout  after which the coordinator aborts a transaction
    metadata_max_age     after which topics are asked about again
    """

    _transactions: Transactions | None = None
    _trouble: str | None = None

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str],
        acks: int | str = -1,
        compression: str = "none",
        linger_ms: float = 5,
        batch_size: int = BATCH_SIZE,
        client_id: str = "hmb",
        *,
        buffer_memory: int = 32 * 1024 * 1024,
        max_request_size: int = MAX_REQUEST_SIZE,
        max_in_flight: int = MOST_IN_FLIGHT,
        request_timeout: float = 30.0,
        delivery_timeout: float = 120.0,
        max_block: float = 60.0,
        retry_backoff: float = 0.1,
        compression_level: int | None = None,
        idempotence: bool | None = None,
        partitioner: str | Partitioner = "murmur2",
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        transactional_id: str | None = None,
        transaction_timeout: float = 60.0,
        metadata_max_age: float = METADATA_MAX_AGE,
    ) -> None:
        encoding = Encoding(_codec(compression), compression_level, transactional=transactional_id is not None)
        number_of_acks = _checked_acks(acks, idempotence, transactional_id)
        is_numbered = number_of_acks == ALL and idempotence is not False
        _check_in_flight(max_in_flight, is_numbered)
        self._max_block, self._retry_backoff, self._max_request_size = max_block, retry_backoff, max_request_size
        self._partitioner = partitioner_of(partitioner)
        self._key_serializer, self._value_serializer = key_serializer, value_serializer
        # The last try may begin right before the delivery timeout; it has to find the leader and to be answered.
        self._patience = delivery_timeout + 2 * request_timeout
        timeout = min(request_timeout, delivery_timeout)
        self._cluster = Cluster(bootstrap_servers, client_id, timeout, metadata_max_age=metadata_max_age)
        if transactional_id is not None:
            patience = (transaction_timeout, max_block, retry_backoff)
            self._transactions = Transactions(self._cluster, transactional_id, *patience)
        size = min(batch_size, max_request_size)
        self._accumulator = Accumulator(size, linger_ms / 1000, buffer_memory, max_block)
        times = (request_timeout, delivery_timeout, retry_backoff, metadata_max_age)
        settings = Settings(number_of_acks, encoding, max_request_size, max_in_flight, *times)
        numbering = ProducerId(required=bool(idempotence)) if is_numbered else Identities()
        identities = self._transactions or numbering
        self._completion = Completion(self._accumulator, self._cluster, settings, identities)
        self._router = Router(self._completion)
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
        """Queue a record. Waits for the topic's metadata at first, and while the buffer is full (`max_block`).

        `value` and `key` are bytes or None, unless there are serializers; `timestamp` is in ms since 1970.
        `on_delivery` is called as by `Delivery.add_done_callback`.
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
        known = self._known(topic, partition)
        partitions = len(known.leaders)
        if partition is None:
            partition = self._partitioner(key, partitions)
            if partition is not None and partition not in known.leaders:
                raise no_such_partition(known, partition)
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
        """Queue many records, from lists of bytes and None or from Arrow columns of binary or string.

        Costs a third of `send` per record where there are neither keys nor nulls, headers or timestamps. Serializers
        are not used. If the buffer stays full, TimeoutError says how many records were queued.
        """
        if self._transactions is not None:
            self._transactions.check_sending()
        known = self._known(topic, partition)
        partitions = len(known.leaders)
        parts: list[Part] = []
        queued = 0
        for some in columns(values, keys, headers, timestamps):
            now = time.time_ns() // 1_000_000
            try:
                if some.are_plain and (partition is not None or self._partitioner is by_murmur2):
                    plain = cast(Sequence[bytes], some.values)
                    self._check_largest(RECORD_OVERHEAD + max(map(len, plain)))
                    self._accumulator.append_values(topic, partition, partitions, now, plain, queued, parts)
                else:
                    rows = some.rows(now, partition, self._partitioner, partitions)
                    self._check_largest(max(row.size for row in rows))
                    self._accumulator.append_rows(topic, partitions, rows, queued, parts)
            except (KafkaError, TimeoutError) as error:
                raise _with_count(error, sum(len(part.rows) for part in parts), len(values)) from error
            queued += len(some.values)
        return Deliveries(parts)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all that was sent before is delivered or given up; the deliveries say which.

        TimeoutError if that takes longer, or if the sender is stuck, in a callback for example.
        """
        deadline = time.monotonic() + (self._patience if timeout is None else timeout)
        for receipt in reversed(self._accumulator.seal()):  # the last one first: one wait will do for most
            if not receipt.wait_until_finished(max(0.0, deadline - time.monotonic())):
                raise self._stuck(timeout)

    def close(self, timeout: float | None = None) -> None:
        """Deliver what is queued, then end; what is not delivered in time is given up, and that is a TimeoutError.

        A transaction that is not committed is left to the coordinator, which aborts it after `transaction_timeout`.
        """
        self._accumulator.close()
        self._router.join(self._patience if timeout is None else timeout)
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
        """Once, before the first transaction: shuts out older producers of this transactional id."""
        self._with_transactions().initialize()

    def begin_transaction(self) -> None:
        """All that is sent from now on is read (by `read_committed` consumers) when it is committed, or never."""
        self._with_transactions().begin()

    def commit_transaction(self) -> None:
        """Deliver all and commit; KafkaError if a record could not be delivered, and then abort is what is left."""
        self._with_transactions().commit(self.flush)

    def abort_transaction(self) -> None:
        """Take back all that was sent since `begin_transaction`."""
        self._with_transactions().abort(self.flush)

    def send_offsets_to_transaction(self, offsets: Offsets, group: GroupMetadata | str) -> None:
        """Commit what a consumer has read together with what was made of it, for `consumer.group_metadata`."""
        self._with_transactions().send_offsets(offsets, group)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One transaction: committed at the end of the block, aborted if an exception leaves it."""
        self.begin_transaction()
        try:
            yield
            self.commit_transaction()
        except BaseException:
            if self._with_transactions().can_abort:
                self.abort_transaction()
            raise

    def _with_transactions(self) -> Transactions:
        if self._transactions is None:
            raise ValueError("this producer has no transactional_id")
        return self._transactions

    def metrics(self) -> ProducerMetrics:
        """What it has done so far."""
        return self._accumulator.counters.snapshot(self._accumulator.used)

    @property
    def trouble(self) -> str | None:
        """Why nothing gets on at the moment, as far as it is known, or None; from any thread."""
        return self._trouble or self._completion.trouble

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _stuck(self, timeout: float | None) -> TimeoutError:
        if timeout is not None:
            return TimeoutError(f"not all was delivered within {timeout:g} s")
        return TimeoutError(f"the producer's thread is stuck: records are on their way for {self._patience:g} s")

    def _check_largest(self, size: int) -> None:
        """Of a record; KafkaError if it can never be sent."""
        if (alone := size + RECORD_BATCH_OVERHEAD) > self._max_request_size:
            what = f"a batch of this record alone has {alone:,} bytes, "
            what += f"which is more than max.request.size, {self._max_request_size:,} bytes: "
            what += "split it, or raise that (max_request_size of hmb.Producer) and the topic's max.message.bytes"
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, what)

    def _known(self, name: str, partition: int | None) -> Topic:
        """The topic's metadata. The router sees to it that leaders are right; here, only their number matters."""
        topic = self._cluster.last_known(name) or self._topic(name)
        if partition is not None and partition not in topic.leaders:
            self._cluster.forget(name)  # it may have got more
            topic = self._topic(name)
            if partition not in topic.leaders:
                raise no_such_partition(topic, partition)
        return topic

    def _topic(self, name: str) -> Topic:
        """Ask for it; a topic that is just being created gets the time it needs."""
        check_topic_name(name)
        deadline = time.monotonic() + self._max_block
        while True:
            self._accumulator.check_open()
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


def _codec(compression: str) -> Codec:
    if compression.upper() not in Codec.__members__:
        raise ValueError(f"compression is one of {', '.join(Codec.__members__).lower()}, not {compression!r}")
    return Codec[compression.upper()]


def _checked_acks(acks: int | str, idempotence: bool | None, transactional_id: str | None) -> int:
    if acks not in ACKS:
        raise ValueError(f"acks is 0, 1 or -1 (all), not {acks!r}")
    if (idempotence or transactional_id is not None) and ACKS[acks] != ALL:
        what = "idempotence needs" if transactional_id is None else "transactions need"
        raise ValueError(f"{what} acks=-1 (all), not {acks}")
    if transactional_id is not None and idempotence is False:
        raise ValueError("transactions need idempotence")
    return ACKS[acks]


def _check_in_flight(max_in_flight: int, is_idempotent: bool) -> None:
    if max_in_flight < 1:
        raise ValueError(f"max_in_flight is at least 1, not {max_in_flight}")
    if is_idempotent and max_in_flight > MOST_IN_FLIGHT:
        what = f"with idempotence max_in_flight is at most {MOST_IN_FLIGHT}, not {max_in_flight}"
        raise ValueError(f"{what}: a broker remembers no more batches of a producer (or idempotence=False)")


def _with_count(error: KafkaError | TimeoutError, queued: int, count: int) -> Exception:
    """How far `send_many` came."""
    if isinstance(error, KafkaError):
        return KafkaError(error.code, f"{queued} of {count} records are queued, then: {error.message}")
    return TimeoutError(f"{queued} of {count} records are queued, then: {error}")
