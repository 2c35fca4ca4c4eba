"""Metadata: the brokers of a cluster, and the leader of each partition.

A client sends records to the *leader* of a partition, and fetches records from the leader. A client starts with the
address of any broker, a *bootstrap server*. The client sends a Metadata request to this broker, with the names of the
topics that it needs. The response contains the addresses of all brokers and the id of each partition's leader:
    Metadata(["weather"])  ----->  localhost:9092 (bootstrap server)
                           <-----  brokers 1 = host-a:9092, 2 = host-b:9092
                                   weather-0: leader 1, epoch 5; weather-1: leader 2, epoch 3

The addresses in a Metadata response are the brokers' *advertised listeners*. The client uses these addresses for all
further requests.

A `Cluster` stores the last metadata of each topic. The metadata of a topic becomes outdated after
`metadata_max_age` seconds, or when the client calls `forget`. If a client needs outdated metadata, the
`Cluster` sends one request for all topics whose metadata is outdated.

Brokers learn about a new leader at different times. So a broker may send metadata that is older than the
metadata that the client has stored. Each new leader of a partition gets a higher number, the *leader epoch*. If
two brokers name different leaders, the client uses the leader with the higher leader epoch.

Since Kafka 2.8, each topic has an id. Some requests contain this id instead of the topic's name.

A `Cluster` also keeps one connection for requests that any broker can answer. If this connection breaks, the
`Cluster` tries the addresses of all known brokers and bootstrap servers until one of them answers. It begins with
the addresses that have not failed recently.

All threads of a producer share one `Cluster`. A lock ensures that only one thread at a time sends a request. If a
thread waits too long for the lock, the thread gets ConnectionFailed, as if no broker had answered.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.errors import response_error
from hmb.client.reconnecting import AddressFailures
from hmb.client.security.settings import ClientSecurity, SecuritySettings, client_security
from hmb.client.settings import CLIENT_ID, METADATA_MAX_AGE, REQUEST_TIMEOUT
from hmb.defaults import DEFAULT_PORT, DEFAULT_SERVER
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.protocol.schema import Request
from hmb.protocol.topics import NO_TOPIC_ID, OFFSETS_TOPIC, TopicPartition

# With a lower version, a request that names a missing topic can create it (`auto.create.topics.enable`). To avoid this,
# the client requests the full list of topics instead.
FIRST_VERSION_WITHOUT_CREATION = MetadataRequest.first_version("allow_auto_topic_creation")


class Node(NamedTuple):
    """A broker's advertised address."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic, with the leader of each partition. The leader is None while the partition has no leader.

    Brokers older than Kafka 2.8 have no topic ids. Brokers older than Kafka 2.1 send no leader epochs, so each epoch is
    -1.
    """

    name: str
    leaders: dict[int, Node | None]
    topic_id: UUID = NO_TOPIC_ID
    is_internal: bool = False
    leader_epochs: dict[int, int] = field(default_factory=dict)


def parse_servers(servers: str | Iterable[str]) -> list[Node]:
    """Return the addresses in a text such as "host:port,host:port". The default port is 9092.

    An IPv6 address needs brackets, for example "[::1]:9092".

    Raises ValueError for an invalid address.
    """
    addresses = servers.split(",") if isinstance(servers, str) else list(servers)
    return [_parse_server(address.strip()) for address in addresses]


def _parse_server(address: str) -> Node:
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, str(DEFAULT_PORT)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{address!r} is not an address: write host:port, for example {DEFAULT_SERVER}")
    return Node(host, int(port))


class Cluster:
    """The brokers of a cluster, and the leaders of its partitions. Several threads may use one `Cluster`."""

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str],
        client_id: str = CLIENT_ID,
        timeout: float = REQUEST_TIMEOUT,
        *,
        metadata_max_age: float = METADATA_MAX_AGE,
        clock: Callable[[], float] = time.monotonic,
        security: SecuritySettings | ClientSecurity | None = None,
    ) -> None:
        self._bootstrap = parse_servers(bootstrap_servers)
        self._client_id = client_id
        self._security = client_security(security)
        self._timeout = timeout
        self._max_age, self._clock = metadata_max_age, clock
        self._lock = threading.Lock()  # guards the fields below; a thread also holds it while it waits for a response
        self._connection: Connection | None = None
        self._address_failures = AddressFailures(clock)  # All connections share this object, which has its own lock.
        self._nodes: dict[int, Node] = {}
        self._controller_id = -1
        self._topics: dict[str, TopicMetadata] = {}
        self._names: dict[UUID, str] = {}
        self._received_at: dict[str, float] = {}  # the time at which each topic's metadata was received
        self._outdated: set[str] = set()  # topics whose metadata must be requested again

    @property
    def was_reached(self) -> bool:
        """True if at least one broker has ever answered this client."""
        return bool(self._nodes) or self._connection is not None

    @property
    def nodes(self) -> dict[int, Node]:
        """The address of each broker in the last metadata response, by broker id. The property takes no lock."""
        return self._nodes

    def last_known(self, name: str) -> TopicMetadata | None:
        """Return the stored metadata of a topic, even if outdated. Return None if no metadata is stored.

        The method takes no lock and sends no request.
        """
        return self._topics.get(name)

    def topic(self, name: str, *, create: bool = False) -> TopicMetadata:
        """Return the metadata of a topic. If this metadata is missing or outdated, request it first.

        If `create` is true, the broker may create a missing topic. Raises KafkaError if the response has an error code
        for the topic, and ConnectionFailed if no broker answers.
        """
        with self._locked():
            known = self._topics.get(name)
            if known is None or name in self._outdated or None in known.leaders.values():
                return self._refresh(name, create)
            if self._is_aged(name):
                try:
                    return self._refresh(name, create)
                except ConnectionFailed:
                    return known  # Use the old metadata. If it is wrong, a broker will return an error.
            return known

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return the name of the topic with this id, or None if no topic has this id.

        If the client does not know the id yet, it first requests the metadata of all topics.
        """
        if topic_id not in self._names:
            self.topics()
        return self._names.get(topic_id)

    def leader(self, partition: TopicPartition) -> Node:
        """Return the leader of a partition. Raises KafkaError if the partition does not exist or has no leader."""
        name, number = partition
        known = self._topics.get(name)
        leader = known.leaders.get(number) if known else None
        if leader is not None and name not in self._outdated and not self._is_aged(name):
            return leader  # In this usual case, the method needs no lock and no request.
        topic = self.topic(name)
        if number not in topic.leaders:
            raise no_such_partition(topic, number)
        leader = topic.leaders[number]
        if leader is None:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader at the moment")
        return leader

    def topics(self) -> list[TopicMetadata]:
        """Request the metadata of all topics, and return the topics sorted by name."""
        topics = [topic.name or "" for topic in self.metadata().topics if not topic.error_code]
        return [self._topics[name] for name in sorted(topics)]

    def metadata(self, names: Collection[str] | None = None) -> MetadataResponse:
        """Request the metadata of the topics in `names`, and return the response. `names=None` means all topics.

        A broker older than Kafka 0.11 might create missing topics that the request names. For such a broker, the
        request therefore contains no names, and the response contains all topics.
        """
        with self._locked():
            response = self._request_metadata(lambda version: _request_for(names, version))
            for topic in response.topics:
                if not topic.error_code:
                    self._store(topic)
            return response

    def forget(self, name: str) -> None:
        """Mark the metadata of a topic as outdated. The methods `topic` and `leader` then request it again."""
        self._outdated.add(name)

    def connect(self, node: Node) -> Connection:
        """Return a new connection to a broker. Only the caller uses this connection. The caller must close it."""
        failures, security = self._address_failures, self._security
        return Connection(
            node.host, node.port, self._client_id, self._timeout, address_failures=failures, security=security
        )

    def send(self, request: Request, version: int | None = None) -> Any:
        """Send a request that any broker can answer, and return the response."""
        with self._locked():
            return self._any().send(request, version)

    def version_of(self, request: type[Request]) -> int:
        """Return the version that the method `send` uses for this request."""
        with self._locked():
            return self._any().version_of(request)

    def supports(self, request: type[Request]) -> bool:
        """Return whether the broker that receives the requests of `send` supports this request."""
        with self._locked():
            return self._any().supports(request)

    def send_to_controller(self, request: Request, version: int | None = None) -> Any:
        """Send a request to the controller of the cluster, and return the response.

        Without KRaft, only the controller can handle some requests, for example the creation of a topic. With KRaft,
        every broker accepts these requests. If the brokers report no controller, send the request to any broker.
        """
        with self._locked():
            if self._any().version_of(MetadataRequest) > 0:  # A response of version 0 does not contain the controller.
                self._request_metadata(lambda version: MetadataRequest(topics=[]))
            controller = self._nodes.get(self._controller_id)
        if controller is None:
            return self.send(request, version)
        with self.connect(controller) as connection:
            return connection.send(request, version)

    def close(self) -> None:
        """Close the connection immediately. A thread that waits for a response gets ConnectionFailed."""
        connection = self._connection
        if connection is None:
            return
        connection.interrupt()
        if self._lock.acquire(blocking=False):  # If another thread holds the lock, that thread closes the connection.
            try:
                connection.close()
            finally:
                self._lock.release()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock during a `with` block.

        Raises ConnectionFailed if the lock does not become free in time.

        The thread that holds the lock may try all known addresses, one after the other. Each attempt can take up to
        `timeout` seconds. Another thread waits for all these attempts, and for one more `timeout`. For example,
        with 4 addresses and a `timeout` of 10 seconds, it waits at most 50 seconds.
        """
        longest = self._timeout * (len(self._nodes) + len(self._bootstrap) + 1)
        if not self._lock.acquire(timeout=longest):
            what = f"no broker answered within {longest:g} s"
            raise ConnectionFailed(self._bootstrap[0].host, self._bootstrap[0].port, what)
        try:
            yield
        finally:
            self._lock.release()

    def _is_aged(self, name: str) -> bool:
        return self._clock() - self._received_at[name] >= self._max_age

    def _is_due(self, name: str) -> bool:
        return name in self._outdated or self._is_aged(name)

    def _refresh(self, name: str, create: bool) -> TopicMetadata:
        """Request and return a topic's metadata. The request can also refresh the metadata of other topics."""
        others = [] if create else [it for it in self._topics if it != name and self._is_due(it)]
        requested = None
        for topic in self._request_metadata(lambda version: _request_for((name, *others), version, create)).topics:
            if topic.name == name:
                requested = topic
            elif not topic.error_code:
                self._store(topic)
        if requested is None or requested.error_code:
            raise topic_error(name, requested.error_code if requested else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return self._store(requested)

    def _request_metadata(self, request: Callable[[int], MetadataRequest]) -> MetadataResponse:
        """Send a Metadata request, and return the response. If a broker fails, send the request to another broker.

        `request` is a function that makes the request. Its argument is the version of the Metadata request to use.
        """
        for _ in self._addresses():
            connection = self._any()
            version = connection.version_of(MetadataRequest)
            try:
                response: MetadataResponse = connection.send(request(version), version)
            except ConnectionFailed as error:
                failure = error
                continue
            if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:  # The broker belongs to another cluster now.
                self._nodes = {}
                connection.close()
                failure = ConnectionFailed(connection.host, connection.port, f"{connection.address} left the cluster")
                continue
            if response.error_code:
                raise response_error(connection.address, response.error_code)
            # A broker that has just started can send an empty list. The client then keeps the brokers that it knows.
            self._nodes = {it.node_id: Node(it.host, it.port) for it in response.brokers} or self._nodes
            self._controller_id = response.controller_id
            for topic in response.topics:
                topic.is_internal |= topic.name == OFFSETS_TOPIC  # A response of version 0 has no `is_internal`.
            return response
        raise failure

    def _store(self, topic: MetadataResponse.MetadataResponseTopic) -> TopicMetadata:
        name = topic.name or ""
        partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
        leaders = {partition.partition_index: self._nodes.get(partition.leader_id) for partition in partitions}
        epochs = {partition.partition_index: partition.leader_epoch for partition in partitions}
        before = self._topics.get(name)
        if before is not None and before.topic_id == topic.topic_id:
            for number, epoch in before.leader_epochs.items():
                if 0 <= epochs.get(number, epoch) < epoch:  # This broker still reports an older leader.
                    leaders[number], epochs[number] = before.leaders[number], epoch
        known = TopicMetadata(name, leaders, topic.topic_id, topic.is_internal, epochs)
        self._received_at[name] = self._clock()
        self._topics[name] = known
        if known.topic_id != NO_TOPIC_ID:
            self._names[known.topic_id] = name
        self._outdated.discard(name)
        return known

    def _addresses(self) -> list[Node]:
        """Return the addresses of all brokers and bootstrap servers, in random order.

        Because of the random order, different clients connect to different brokers. Addresses that have failed recently
        come last.
        """
        nodes = list(dict.fromkeys((*self._nodes.values(), *self._bootstrap)))
        random.shuffle(nodes)
        return sorted(nodes, key=lambda node: self._address_failures.has_failed_recently(f"{node.host}:{node.port}"))

    def _any(self) -> Connection:
        """Return a connection to the first broker that answers.

        If no broker answers, raise ConnectionFailed. Its message contains the error of each broker.
        """
        reasons = {}
        for connection in self._connections():
            try:
                connection.version_of(MetadataRequest)
            except ConnectionFailed as error:
                reasons[connection.address] = str(error)
                continue
            self._connection = connection
            return connection
        first = self._bootstrap[0]
        raise ConnectionFailed(first.host, first.port, "; ".join(reasons[address] for address in sorted(reasons)))

    def _connections(self) -> Iterator[Connection]:
        """Yield the open connection first, if one exists. Then yield a new connection to each address."""
        if self._connection is not None and self._connection.is_open:
            yield self._connection
        yield from map(self.connect, self._addresses())


def _request_for(names: Collection[str] | None, version: int, create: bool = False) -> MetadataRequest:
    if names and version < FIRST_VERSION_WITHOUT_CREATION and not create:
        names = None
    if names is None:  # None means all topics. In version 0 of the request, an empty list means all topics.
        return MetadataRequest(topics=None if version else [])
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names])
    request.allow_auto_topic_creation = create or version < FIRST_VERSION_WITHOUT_CREATION
    return request


def no_such_partition(topic: TopicMetadata, number: int) -> KafkaError:
    what = f"topic {topic.name!r} has no partition {number}; its partitions are 0 to {len(topic.leaders) - 1}"
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, what)


def topic_error(name: str, number: int, message: str | None = None) -> KafkaError:
    """Return the exception for a topic's error code.

    `number` is the error code. `message` is the broker's own error text, or None if the broker sent no text.
    """
    if number == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    error = response_error(f"topic {name!r}", number)
    return KafkaError(error.code, message or error.message)
