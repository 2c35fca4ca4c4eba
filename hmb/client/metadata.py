"""Who leads which partition: what a client has to know before it can send anything.

Records go to, and come from, the *leader* of a partition. A client starts from any address it was told (the
bootstrap servers), asks Metadata there for the topics it wants, and gets back all brokers with their addresses and,
per partition, the id of its leader. From then on it talks to those addresses, the brokers' *advertised listeners*,
whatever it was told first.

`Cluster` keeps the last answer until somebody says that it is out of date (`forget`), or until it is `metadata_max_age`
old; then the next who wants to know a topic asks, for all topics that are out of date at once. An answer may be older
than what is known, for brokers hear of a new leader one after the other: of two leaders the one with the higher
*leader epoch* holds. Topics have ids since Kafka 2.8, and newer requests name them by these.

`Cluster` also holds the one connection for requests that any broker answers. When its broker dies, the next one is
asked, those first that have not failed lately; the bootstrap servers stay among them. A lock guards all of this, so
that all threads of a producer may ask; a thread that waits for its turn longer than a request can take gives up as if
no broker had answered.
"""

import random
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.errors import answered_error
from hmb.client.reconnecting import KnownBrokers
from hmb.defaults import DEFAULT_PORT, DEFAULT_SERVER
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.protocol.schema import Request
from hmb.protocol.topics import NO_TOPIC_ID, OFFSETS_TOPIC, TopicPartition

METADATA_MAX_AGE = 300.0  # seconds
# Before this version, asking for a topic may create it; a client that must not create topics asks for all of them.
FIRST_VERSION_WITHOUT_CREATION = MetadataRequest.first_version("allow_auto_topic_creation")


class Node(NamedTuple):
    """A broker's advertised address."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic's partitions, and the leader of each; None while there is no leader."""

    name: str
    leaders: dict[int, Node | None]
    topic_id: UUID = NO_TOPIC_ID  # which brokers before 2.8 do not have
    is_internal: bool = False
    leader_epochs: dict[int, int] = field(default_factory=dict)  # -1 where the broker does not tell (before 2.1)


def parse_servers(servers: str | Iterable[str]) -> list[Node]:
    """Addresses from "host:port,host:port"; IPv6 addresses in brackets; 9092 where no port is given."""
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
    """The brokers behind the bootstrap servers."""

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str],
        client_id: str = "hmb",
        timeout: float = 30.0,
        *,
        metadata_max_age: float = METADATA_MAX_AGE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bootstrap = parse_servers(bootstrap_servers)
        self._client_id = client_id
        self._timeout = timeout
        self._max_age, self._clock = metadata_max_age, clock
        self._lock = threading.Lock()  # guards all below; held while a request is under way; taken last, by `_alone`
        self._connection: Connection | None = None
        self._known = KnownBrokers(clock)  # with a lock of its own; shared by all connections
        self._nodes: dict[int, Node] = {}
        self._controller_id = -1
        self._topics: dict[str, TopicMetadata] = {}
        self._names: dict[UUID, str] = {}
        self._asked_at: dict[str, float] = {}  # when the broker told of a topic
        self._old: set[str] = set()  # topics to ask about again

    @property
    def was_reached(self) -> bool:
        """Whether a broker ever answered: about the cluster, or at least which versions it has."""
        return bool(self._nodes) or self._connection is not None

    @property
    def nodes(self) -> dict[int, Node]:
        """The brokers by their ids, as the last answer named them; takes no lock."""
        return self._nodes

    def last_known(self, name: str) -> TopicMetadata | None:
        """What the last answer said about a topic, however old it is; takes no lock, for it waits for nothing."""
        return self._topics.get(name)

    def topic(self, name: str, *, create: bool = False) -> TopicMetadata:
        """What is known about a topic; asks if nothing is. `create` lets a broker that does so create it."""
        with self._alone():
            known = self._topics.get(name)
            if known is None or name in self._old or None in known.leaders.values():
                return self._refresh(name, create)
            if self._is_aged(name):
                try:
                    return self._refresh(name, create)
                except ConnectionFailed:
                    return known  # it may well hold still; whom it leads to will tell
            return known

    def topic_name(self, topic_id: UUID) -> str | None:
        """The name behind an id: as far as topics were asked for, or else of all; None if there is no such topic."""
        if topic_id not in self._names:
            self.topics()
        return self._names.get(topic_id)

    def leader(self, partition: TopicPartition) -> Node:
        """Who leads a partition; KafkaError if nobody does, or if it does not exist."""
        name, number = partition
        known = self._topics.get(name)
        leader = known.leaders.get(number) if known else None
        if leader is not None and name not in self._old and not self._is_aged(name):
            return leader  # without the lock, and whether or not other partitions have one
        topic = self.topic(name)
        if number not in topic.leaders:
            raise no_such_partition(topic, number)
        leader = topic.leaders[number]
        if leader is None:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader at the moment")
        return leader

    def topics(self) -> list[TopicMetadata]:
        """All topics, by name; asks anew."""
        topics = [topic.name or "" for topic in self.metadata().topics if not topic.error_code]
        return [self._topics[name] for name in sorted(topics)]

    def metadata(self, names: Collection[str] | None = None) -> MetadataResponse:
        """The broker's own words about these topics, or about all; brokers before 0.11 always tell of all."""
        with self._alone():
            response = self._ask(lambda version: _request_for(names, version))
            for topic in response.topics:
                if not topic.error_code:
                    self._remember(topic)
            return response

    def forget(self, name: str) -> None:
        """What was known about a topic turned out to be old; takes no lock either."""
        self._old.add(name)

    def connect(self, node: Node) -> Connection:
        """A new connection, the caller's own."""
        return Connection(node.host, node.port, self._client_id, self._timeout, known=self._known)

    def send(self, request: Request, version: int | None = None) -> Any:
        """The answer of any broker to a request."""
        with self._alone():
            return self._any().send(request, version)

    def version_of(self, request: type[Request]) -> int:
        """The version in which `send` would send a request."""
        with self._alone():
            return self._any().version_of(request)

    def knows(self, request: type[Request]) -> bool:
        """Whether the broker that `send` would ask has this API at all."""
        with self._alone():
            return self._any().knows(request)

    def send_to_controller(self, request: Request, version: int | None = None) -> Any:
        """The answer of the broker that creates and deletes topics (before KRaft: that one only)."""
        with self._alone():
            if self._any().version_of(MetadataRequest) > 0:  # version 0 names no controller; its empty list means all
                self._ask(lambda version: MetadataRequest(topics=[]))
            controller = self._nodes.get(self._controller_id)
        if controller is None:
            return self.send(request, version)
        with self.connect(controller) as connection:
            return connection.send(request, version)

    def close(self) -> None:
        """Waits for nobody: a thread that asks a broker at this moment hears that the connection has gone."""
        connection = self._connection
        if connection is None:
            return
        connection.interrupt()
        if self._lock.acquire(blocking=False):  # else the thread that has it closes the connection
            try:
                connection.close()
            finally:
                self._lock.release()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time; the others wait as long as it may take to ask every broker."""
        patience = self._timeout * (len(self._nodes) + len(self._bootstrap) + 1)
        if not self._lock.acquire(timeout=patience):
            what = f"no broker answered within {patience:g} s"
            raise ConnectionFailed(self._bootstrap[0].host, self._bootstrap[0].port, what)
        try:
            yield
        finally:
            self._lock.release()

    def _is_aged(self, name: str) -> bool:
        return self._clock() - self._asked_at[name] >= self._max_age

    def _refresh(self, name: str, create: bool) -> TopicMetadata:
        """Ask about a topic, and in the same request about all others that are due."""
        others = [] if create else [it for it in self._topics if it != name and (it in self._old or self._is_aged(it))]
        asked = None
        for topic in self._ask(lambda version: _request_for((name, *others), version, create)).topics:
            if topic.name == name:
                asked = topic
            elif not topic.error_code:
                self._remember(topic)
        if asked is None or asked.error_code:
            raise topic_error(name, asked.error_code if asked else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return self._remember(asked)

    def _ask(self, request: Callable[[int], MetadataRequest]) -> MetadataResponse:
        """The answer to the request that is right for a version; if a broker fails, another one's."""
        for _ in self._addresses():
            connection = self._any()
            version = connection.version_of(MetadataRequest)
            try:
                response: MetadataResponse = connection.send(request(version), version)
            except ConnectionFailed as error:
                failure = error
                continue
            if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:  # this is not the cluster it used to be
                self._nodes = {}
                connection.close()
                failure = ConnectionFailed(connection.host, connection.port, f"{connection.address} left the cluster")
                continue
            if response.error_code:
                raise answered_error(connection.address, response.error_code)
            # A broker that has just started may know of none.
            self._nodes = {it.node_id: Node(it.host, it.port) for it in response.brokers} or self._nodes
            self._controller_id = response.controller_id
            for topic in response.topics:
                topic.is_internal |= topic.name == OFFSETS_TOPIC  # version 0 does not tell
            return response
        raise failure

    def _remember(self, topic: MetadataResponse.MetadataResponseTopic) -> TopicMetadata:
        name = topic.name or ""
        partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
        leaders = {partition.partition_index: self._nodes.get(partition.leader_id) for partition in partitions}
        epochs = {partition.partition_index: partition.leader_epoch for partition in partitions}
        before = self._topics.get(name)
        if before is not None and before.topic_id == topic.topic_id:
            for number, epoch in before.leader_epochs.items():
                if 0 <= epochs.get(number, epoch) < epoch:  # from a broker that has not heard of it yet
                    leaders[number], epochs[number] = before.leaders[number], epoch
        known = TopicMetadata(name, leaders, topic.topic_id, topic.is_internal, epochs)
        self._asked_at[name] = self._clock()
        self._topics[name] = known
        if known.topic_id != NO_TOPIC_ID:
            self._names[known.topic_id] = name
        self._old.discard(name)
        return known

    def _addresses(self) -> list[Node]:
        """Brokers and bootstrap servers: in any order, so that not all clients ask the same one; doubtful ones last."""
        nodes = list(dict.fromkeys((*self._nodes.values(), *self._bootstrap)))
        random.shuffle(nodes)
        return sorted(nodes, key=lambda node: self._known.is_doubtful(f"{node.host}:{node.port}"))

    def _any(self) -> Connection:
        """The connection to the first broker that answers; ConnectionFailed with every reason if none does."""
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
        """The one that is open, if its broker has not gone, and then new ones."""
        if self._connection is not None and self._connection.is_open:
            yield self._connection
        yield from map(self.connect, self._addresses())


def _request_for(names: Collection[str] | None, version: int, create: bool = False) -> MetadataRequest:
    if names and version < FIRST_VERSION_WITHOUT_CREATION and not create:
        names = None
    if names is None:  # version 0 has no null: there, an empty list asks for everything
        return MetadataRequest(topics=None if version else [])
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names])
    request.allow_auto_topic_creation = create or version < FIRST_VERSION_WITHOUT_CREATION
    return request


def no_such_partition(topic: TopicMetadata, number: int) -> KafkaError:
    what = f"topic {topic.name!r} has no partition {number}, only {len(topic.leaders)} from 0 on"
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, what)


def topic_error(name: str, number: int, message: str | None = None) -> KafkaError:
    """The error that a broker answered for a topic."""
    if number == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    error = answered_error(f"topic {name!r}", number)
    return KafkaError(error.code, message or error.message)
