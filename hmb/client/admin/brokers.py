"""The class `Brokers`: it finds the right broker for a request of an `Admin`, and retries after temporary errors.

Some requests, for example a request for the list of topics, can go to any broker. Other requests must go to one
particular broker: to the controller, to the leader of a partition, or to the coordinator of a group. The class
`Cluster` finds the controller and the leaders with Metadata requests. The class `Brokers` finds a coordinator with a
FindCoordinator request.

While a partition has no leader, or a group has no coordinator, the brokers respond with a temporary error. The class
`Brokers` then retries for up to `request_timeout` seconds. If a connection is lost, `Brokers` retries for only 3
seconds, which is enough for the restart of a broker. If no broker has ever answered, `Brokers` does not retry, because
the address is probably wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeGuard, TypeVar

from hmb.client.backoff import RETRY_PAUSE
from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.coordinator import find_coordinator
from hmb.client.metadata import Cluster, Node
from hmb.client.retries import with_retries
from hmb.client.security.settings import ClientSecurity, SecuritySettings
from hmb.protocol.enums import CoordinatorType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.topics import TopicPartition

T = TypeVar("T")

PartitionResults = dict[TopicPartition, T | KafkaError]

RECONNECT_FOR = 3.0  # seconds; a broker can restart in this time
TEMPORARY = {
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}


class Brokers:
    """Connects an `Admin` to the brokers of a cluster. Only one thread may use this object. Times are in seconds."""

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str],
        client_id: str,
        request_timeout: float,
        security: SecuritySettings | ClientSecurity | None = None,
    ) -> None:
        self._cluster = Cluster(bootstrap_servers, client_id, request_timeout, security=security)
        self.request_timeout = request_timeout
        self._connections: dict[Node, Connection] = {}
        self._coordinators: dict[str, Node] = {}
        self._is_closed = False

    @property
    def cluster(self) -> Cluster:
        """The metadata of the cluster. Raises RuntimeError if the admin is closed."""
        if self._is_closed:
            raise RuntimeError("the admin is closed")
        return self._cluster

    def close(self) -> None:
        """Close all connections. A second call does nothing."""
        self._is_closed = True
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._coordinators.clear()
        self._cluster.close()

    @property
    def timeout_ms(self) -> int:
        """The request timeout in ms."""
        return int(self.request_timeout * 1000)

    def connection(self, node: Node) -> Connection:
        """Return the connection to the broker with this address. If no connection is open, open one."""
        if node not in self._connections:
            self._connections[node] = self.cluster.connect(node)
        return self._connections[node]

    def any_broker(self) -> Connection:
        """Return a connection to the first broker that can be reached."""
        failed: ConnectionFailed | None = None
        for node in self.cluster.nodes.values() or self.nodes():
            connection = self.connection(node)
            try:
                connection.version_of(MetadataRequest)
                return connection
            except ConnectionFailed as error:
                failed = error
        raise failed or KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "the metadata of the cluster contain no brokers")

    def nodes(self) -> list[Node]:
        """Request the metadata of the cluster, and return the addresses of all brokers."""
        self.retrying(lambda: self.cluster.metadata(()))
        return list(self.cluster.nodes.values())

    def broker(self, number: int) -> Connection:
        """Return the connection to the broker with the id `number`. Raises KafkaError if no such broker exists."""
        if number not in self.cluster.nodes:
            self.cluster.metadata(())
        if number not in self.cluster.nodes:
            known = ", ".join(map(str, sorted(self.cluster.nodes)))
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"no broker has the id {number}; existing ids: {known}")
        return self.connection(self.cluster.nodes[number])

    def _coordinator(self, group: str) -> Connection:
        if group not in self._coordinators:
            self._coordinators[group] = find_coordinator(self.cluster, CoordinatorType.GROUP, group)
        return self.connection(self._coordinators[group])

    def at_coordinator(self, group: str, ask: Callable[[Connection], T]) -> T:
        """Call `ask` with the connection to the group's coordinator, and return the result of `ask`.

        If `ask` raises a temporary error, another broker may have become the coordinator. The method then looks up the
        coordinator again, and calls `ask` again.
        """

        def attempt() -> T:
            try:
                return ask(self._coordinator(group))
            except (ConnectionFailed, KafkaError):
                self._coordinators.pop(group, None)
                raise

        return self.retrying(attempt)

    def at_leaders(
        self,
        partitions: Iterable[TopicPartition],
        ask: Callable[[Connection, list[TopicPartition]], PartitionResults[T]],
    ) -> PartitionResults[T]:
        """Call `ask` for each leader, with the partitions of this leader. Return the results of all partitions.

        After a temporary error, for example because another broker has become the leader, call `ask` again for the
        partitions with this error. Stop after `request_timeout` seconds.
        """
        started = time.monotonic()
        what = "the response of the leader does not contain this partition"
        found: PartitionResults[T] = {it: KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, what) for it in partitions}
        waiting = list(found)
        while True:
            found |= self.retrying(partial(self._ask_leaders, waiting, ask))
            waiting = [partition for partition in waiting if is_temporary(found[partition])]
            if not waiting or time.monotonic() - started >= self.request_timeout:
                return found
            time.sleep(RETRY_PAUSE)

    def _ask_leaders(
        self, partitions: list[TopicPartition], ask: Callable[[Connection, list[TopicPartition]], PartitionResults[T]]
    ) -> PartitionResults[T]:
        """Call `ask` once for each leader, and return the results of all partitions.

        A temporary error can mean that a partition has a new leader. The next attempt therefore requests the metadata
        of the partition's topic again.
        """
        found: PartitionResults[T] = {}
        by_leader: dict[Node, list[TopicPartition]] = {}
        for partition in partitions:
            try:
                by_leader.setdefault(self.cluster.leader(partition), []).append(partition)
            except KafkaError as error:
                found[partition] = error
        for leader, led in by_leader.items():
            try:
                found |= ask(self.connection(leader), led)
            except ConnectionFailed:
                for partition in led:
                    self.cluster.forget(partition.topic)
                raise
        for partition, answer in found.items():
            if is_temporary(answer):
                self.cluster.forget(partition.topic)
        return found

    def retrying(self, attempt: Callable[[], T]) -> T:
        """Call `attempt`, and return its result. After a temporary error, call `attempt` again."""
        return with_retries(attempt, self._retry_for)

    def _retry_for(self, error: ConnectionFailed | KafkaError) -> float:
        """Return the time limit (seconds) for retries after this error. The limit 0 means no retry."""
        if isinstance(error, ConnectionFailed):
            return RECONNECT_FOR if self.cluster.was_reached else 0.0
        return self.request_timeout if is_temporary(error) else 0.0


def is_temporary(answer: object) -> TypeGuard[KafkaError]:
    """Return True if a result is a temporary error: the same request may succeed a little later."""
    return isinstance(answer, KafkaError) and answer.code in TEMPORARY


def raised(result: T | KafkaError) -> T:
    """Return `result`. If `result` is a KafkaError, raise it instead."""
    if isinstance(result, KafkaError):
        raise result
    return result


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the partition numbers of each topic. Most requests contain partitions in this form."""
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    return topics
