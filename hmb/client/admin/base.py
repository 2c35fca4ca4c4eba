"""What all of `Admin` needs: whom to ask, when to ask again, and how an answer for many becomes results and errors.

Some questions any broker answers, some only the controller, the leader of a partition, the coordinator of a group, or
one broker about itself.  `Cluster` knows where most of them are; a coordinator is asked for by the group's name.

A cluster that is just electing somebody answers with an error that passes, and `retrying` tries again for as long as a
request may take.  A connection that breaks is tried again for a few seconds only, which bridges a restart; whoever
typed a wrong address should not wait half a minute to hear it.
"""

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Self, TypeGuard, TypeVar

from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.coordinator import find_coordinator
from hmb.client.metadata import Cluster, Node
from hmb.protocol.enums import CoordinatorType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.schema import Request
from hmb.protocol.topics import TopicPartition

T = TypeVar("T")

Answers = dict[TopicPartition, T | KafkaError]

RETRY_PAUSE = 0.1  # seconds
RECONNECT_FOR = 3.0  # seconds
PASSING = {
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}


class AdminBase:
    """Connections to all of a cluster's brokers; belongs to one thread.  Times are in seconds."""

    def __init__(
        self, bootstrap_servers: str | Iterable[str], client_id: str = "hmb", request_timeout: float = 30.0
    ) -> None:
        self._cluster = Cluster(bootstrap_servers, client_id, request_timeout)
        self._request_timeout = request_timeout
        self._connections: dict[Node, Connection] = {}
        self._coordinators: dict[str, Node] = {}
        self._is_closed = False

    @property
    def cluster(self) -> Cluster:
        """Whoever asks anything comes here first; RuntimeError once it is closed."""
        if self._is_closed:
            raise RuntimeError("the admin is closed")
        return self._cluster

    def close(self) -> None:
        """To be called as often as one likes."""
        self._is_closed = True
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()  # and what coordinators there are: the cluster would have to be asked anew
        self._coordinators.clear()
        self._cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @property
    def _timeout_ms(self) -> int:
        return int(self._request_timeout * 1000)

    def _connection(self, node: Node) -> Connection:
        """The connection to a broker."""
        if node not in self._connections:
            self._connections[node] = self.cluster.connect(node)
        return self._connections[node]

    def _any_broker(self) -> Connection:
        """The connection to the first known broker that can be reached."""
        failed: ConnectionFailed | None = None
        for node in self.cluster.nodes.values() or self._nodes():
            connection = self._connection(node)
            try:
                connection.version_of(MetadataRequest)
                return connection
            except ConnectionFailed as error:
                failed = error
        raise failed or KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "the cluster names no brokers")

    def _nodes(self) -> list[Node]:
        """All brokers, asked anew."""
        self._retrying(lambda: self.cluster.metadata(()))
        return list(self.cluster.nodes.values())

    def _broker(self, number: int) -> Connection:
        """The connection to the broker of that id."""
        if number not in self.cluster.nodes:
            self.cluster.metadata(())
        if number not in self.cluster.nodes:
            known = ", ".join(map(str, sorted(self.cluster.nodes)))
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"there is no broker {number}; there are: {known}")
        return self._connection(self.cluster.nodes[number])

    def _controller(self, request: Request, version: int | None = None) -> Any:
        return self.cluster.send_to_controller(request, version)

    def _coordinator(self, group: str) -> Connection:
        """The connection to a group's coordinator."""
        if group not in self._coordinators:
            self._coordinators[group] = find_coordinator(self.cluster, CoordinatorType.GROUP, group)
        return self._connection(self._coordinators[group])

    def _at_coordinator(self, group: str, ask: Callable[[Connection], T]) -> T:
        """What the group's coordinator answers, wherever it has moved to."""

        def attempt() -> T:
            try:
                return ask(self._coordinator(group))
            except (ConnectionFailed, KafkaError):
                self._coordinators.pop(group, None)
                raise

        return self._retrying(attempt)

    def _at_leaders(
        self, partitions: Iterable[TopicPartition], ask: Callable[[Connection, list[TopicPartition]], Answers[T]]
    ) -> Answers[T]:
        """What the leaders answer about their partitions, asked again about those that had none or another one."""
        started = time.monotonic()
        found: Answers[T] = dict.fromkeys(partitions, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "no answer"))
        waiting = list(found)
        while True:
            found |= self._retrying(partial(self._ask_leaders, waiting, ask))
            waiting = [partition for partition in waiting if will_pass(found[partition])]
            if not waiting or time.monotonic() - started >= self._request_timeout:
                return found
            time.sleep(RETRY_PAUSE)

    def _ask_leaders(
        self, partitions: list[TopicPartition], ask: Callable[[Connection, list[TopicPartition]], Answers[T]]
    ) -> Answers[T]:
        """One attempt, after which the leaders of all that failed are asked for anew."""
        found: Answers[T] = {}
        by_leader: dict[Node, list[TopicPartition]] = {}
        for partition in partitions:
            try:
                by_leader.setdefault(self.cluster.leader(partition), []).append(partition)
            except KafkaError as error:
                found[partition] = error
        for leader, led in by_leader.items():
            try:
                found |= ask(self._connection(leader), led)
            except ConnectionFailed:
                for partition in led:
                    self.cluster.forget(partition.topic)
                raise
        for partition, answer in found.items():
            if will_pass(answer):
                self.cluster.forget(partition.topic)
        return found

    def _retrying(self, attempt: Callable[[], T]) -> T:
        """The result of the first attempt that ends without an error that passes."""
        started = time.monotonic()
        while True:
            try:
                return attempt()
            except KafkaError as error:
                if error.code not in PASSING or time.monotonic() - started >= self._request_timeout:
                    raise
            except ConnectionFailed:
                if not self.cluster.was_reached or time.monotonic() - started >= RECONNECT_FOR:
                    raise
            time.sleep(RETRY_PAUSE)


def will_pass(answer: object) -> TypeGuard[KafkaError]:
    """Whether it is an error, and one that is worth another try."""
    return isinstance(answer, KafkaError) and answer.code in PASSING


def raised(result: T | KafkaError) -> T:
    """The result of one of several; raises it if it is an error."""
    if isinstance(result, KafkaError):
        raise result
    return result


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of the partitions, as most requests have them: by topic."""
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    return topics
