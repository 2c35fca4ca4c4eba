"""Who leads which partition: what a client has to know before it can send anything.

Records go to, and come from, the *leader* of a partition. A client starts from any address it was told (the
bootstrap servers), asks Metadata there for the topics it wants, and gets back all brokers with their addresses and,
per partition, the id of its leader. From then on it talks to those addresses, the brokers' *advertised listeners*,
whatever it was told first.

`Cluster` keeps the last answer until somebody says that it is out of date. It also holds the one connection for
requests that any broker answers. A lock guards both, so that all threads of a producer may ask; a thread that waits
for its turn longer than a request can take gives up as if no broker had answered.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.errors import answered_error
from hmb.defaults import DEFAULT_PORT, DEFAULT_SERVER
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.protocol.schema import Request


class Node(NamedTuple):
    """A broker's advertised address."""

    host: str
    port: int


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic's partitions, and the leader of each; None while there is no leader."""

    name: str
    leaders: dict[int, Node | None]


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

    def __init__(self, bootstrap_servers: str | Iterable[str], client_id: str = "hmb", timeout: float = 30.0) -> None:
        self._bootstrap = parse_servers(bootstrap_servers)
        self._client_id = client_id
        self._timeout = timeout
        self._lock = threading.Lock()  # guards all below; held while a request is under way; taken last, by `_alone`
        self._connection: Connection | None = None
        self._have_api_versions: set[str] = set()  # addresses; shared by all connections
        self._nodes: dict[int, Node] = {}
        self._controller_id = -1
        self._topics: dict[str, Topic] = {}
        self._old: set[str] = set()  # topics to ask about again

    @property
    def was_reached(self) -> bool:
        """Whether a broker ever answered."""
        return bool(self._nodes)

    def last_known(self, name: str) -> Topic | None:
        """What the last answer said about a topic, however old it is; takes no lock, for it waits for nothing."""
        return self._topics.get(name)

    def topic(self, name: str, *, create: bool = False) -> Topic:
        """What is known about a topic; asks if nothing is. `create` lets a broker that does so create it."""
        with self._alone():
            known = self._topics.get(name)
            if known is None or name in self._old or None in known.leaders.values():
                known = self._refresh(name, create)
            return known

    def topics(self) -> list[Topic]:
        """All topics, by name; asks anew."""
        with self._alone():
            # Version 0 has no null: there, an empty list asks for everything.
            version = self._any().version_of(MetadataRequest)
            response = self._ask(MetadataRequest(topics=None if version else []), version)
            topics = [self._remember(topic) for topic in response.topics if not topic.error_code]
            return sorted(topics, key=lambda topic: topic.name)

    def forget(self, name: str) -> None:
        """What was known about a topic turned out to be old; takes no lock either."""
        self._old.add(name)

    def connect(self, node: Node) -> Connection:
        """A new connection, the caller's own."""
        return Connection(node.host, node.port, self._client_id, self._timeout, known=self._have_api_versions)

    def send(self, request: Request, version: int | None = None) -> Any:
        """The answer of any broker to a request."""
        with self._alone():
            return self._any().send(request, version)

    def version_of(self, request: type[Request]) -> int:
        """The version in which `send` would send a request."""
        with self._alone():
            return self._any().version_of(request)

    def send_to_controller(self, request: Request, version: int | None = None) -> Any:
        """The answer of the broker that creates and deletes topics (before KRaft: that one only)."""
        with self._alone():
            newest = self._any().version_of(MetadataRequest)
            if newest > 0:  # version 0 names no controller, and its empty list means all topics
                self._ask(MetadataRequest(topics=[]), newest)
            controller = self._nodes.get(self._controller_id)
        if controller is None:
            return self.send(request, version)
        with self.connect(controller) as connection:
            return connection.send(request, version)

    def close(self) -> None:
        """Takes no lock: whoever asks a broker at this moment finds the connection closed."""
        connection = self._connection
        if connection is not None:
            connection.close()

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

    def _refresh(self, name: str, create: bool) -> Topic:
        version = self._any().version_of(MetadataRequest)
        request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)])
        if version >= 4:
            request.allow_auto_topic_creation = create
        for topic in self._ask(request, version).topics:
            if topic.name == name:
                if topic.error_code:
                    raise topic_error(name, topic.error_code)
                return self._remember(topic)
        raise topic_error(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _ask(self, request: MetadataRequest, version: int) -> MetadataResponse:
        response: MetadataResponse = self._any().send(request, version)
        self._nodes = {broker.node_id: Node(broker.host, broker.port) for broker in response.brokers}
        self._controller_id = response.controller_id
        return response

    def _remember(self, topic: MetadataResponse.MetadataResponseTopic) -> Topic:
        partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
        leaders = {partition.partition_index: self._nodes.get(partition.leader_id) for partition in partitions}
        known = Topic(topic.name or "", leaders)
        self._topics[known.name] = known
        self._old.discard(known.name)
        return known

    def _any(self) -> Connection:
        """The connection to the first broker that answers; ConnectionFailed with every reason if none does."""
        if self._connection is not None and self._connection.is_open:
            return self._connection
        reasons = []
        for node in dict.fromkeys((*self._nodes.values(), *self._bootstrap)):
            connection = self.connect(node)
            try:
                connection.version_of(MetadataRequest)
            except ConnectionFailed as error:
                reasons.append(str(error))
                continue
            self._connection = connection
            return connection
        raise ConnectionFailed(self._bootstrap[0].host, self._bootstrap[0].port, "; ".join(reasons))


def topic_error(name: str, number: int, message: str | None = None) -> KafkaError:
    """The error that a broker answered for a topic."""
    if number == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    error = answered_error(f"topic {name!r}", number)
    return KafkaError(error.code, message or error.message)
