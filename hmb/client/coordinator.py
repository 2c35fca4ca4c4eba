"""The connection to the coordinator of a consumer group or of a transactional id.

The *coordinator* of a group is the broker that stores the offsets and members of the group. A transactional id has a
coordinator, too, which stores its state. The coordinator is the leader of one partition of `__consumer_offsets` or
`__transaction_state`. The hash of the group id or transactional id determines this partition. Any broker returns the
coordinator's address (FindCoordinator; Kafka 0.8.2 called the request ConsumerMetadata).

The coordinator moves when its broker dies. The old one then answers NOT_COORDINATOR, or does not answer at all, and the
client has to look for the new one. The new coordinator first loads its state (COORDINATOR_LOAD_IN_PROGRESS). A
transaction that has just ended needs a moment until its markers are written (CONCURRENT_TRANSACTIONS). `ask` retries
after all these errors. `send` sends one request and leaves errors to its caller.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.errors import answered_error
from hmb.client.metadata import Cluster, Node
from hmb.client.retries import is_retriable, with_retries
from hmb.protocol.enums import CoordinatorType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from hmb.protocol.schema import Request

NAMES = {CoordinatorType.GROUP: "group", CoordinatorType.TRANSACTION: "transactional id"}
MOVED = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
FIRST_VERSION_OF_TYPES = FindCoordinatorRequest.first_version("key_type")
FIRST_VERSION_OF_LISTS = FindCoordinatorRequest.first_version("coordinator_keys")
MARKER_PAUSE = 0.02  # seconds; the time after which the markers of the last transaction are usually written

RequestFor = Callable[[int], Request]  # returns the request in a version
# A function that takes a response, and returns (topic partition or None, error code) for each of its parts.
ErrorCodes = Callable[[Any], Iterable[tuple[object, int]]]


class CoordinatorConnection:
    """A connection to the coordinator of one group or transactional id.

    It belongs to one thread. Other threads may only call `interrupt`.
    """

    def __init__(self, cluster: Cluster, key_type: CoordinatorType, key: str) -> None:
        self._cluster, self._key_type, self._key = cluster, key_type, key
        self._connection: Connection | None = None
        self._interrupted = threading.Event()

    def __str__(self) -> str:
        return f"{NAMES[self._key_type]} {self._key!r}"

    def connection(self) -> Connection:
        """Return the connection, and find the coordinator first if it is not known.

        Raises ConnectionFailed, and KafkaError with COORDINATOR_NOT_AVAILABLE if the cluster has no coordinator.
        """
        if self._connection is None:
            node = find_coordinator(self._cluster, self._key_type, self._key)
            self._connection = self._cluster.connect(node)
        return self._connection

    def send(
        self, kind: type[Request], request: RequestFor, newest: int | None = None, timeout: float | None = None
    ) -> Any:
        """Send one request and return the response. `newest` is the newest version to use.

        Raises ConnectionFailed after a lost connection, and the next call finds the coordinator again.
        """
        connection = self.connection()
        try:
            version = connection.version_of(kind, newest)
            connection.post(request(version), version)
            # This check comes after the connection is open and before the wait, so that no interrupt is missed.
            if self._interrupted.is_set():
                connection.interrupt()
            return connection.receive(timeout)
        except ConnectionFailed:
            self.forget()
            raise
        except BaseException:  # After Ctrl-C, a later request must not receive this response.
            connection.close()
            raise

    def ask(
        self,
        kind: type[Request],
        newest: int,
        request: RequestFor,
        error_codes: ErrorCodes,
        retry_for: float,
        retry_backoff: float,
    ) -> Any:
        """Return the response to a request, after retries for at most `retry_for` seconds.

        `error_codes` returns the error codes in a response. Raises ConnectionFailed and KafkaError.
        """

        def attempt() -> Any:
            try:
                response = self.send(kind, request, newest)
                for partition, code in error_codes(response):
                    if code:
                        raise answered_error(partition or self, code)
                return response
            except KafkaError as error:
                if error.code in MOVED:
                    self.forget()
                raise
            finally:
                if self._interrupted.is_set():
                    self.forget()

        def wait(error: ConnectionFailed | KafkaError) -> bool:
            is_ending = isinstance(error, KafkaError) and error.code is ErrorCode.CONCURRENT_TRANSACTIONS
            return self._interrupted.wait(min(retry_backoff, MARKER_PAUSE) if is_ending else retry_backoff)

        return with_retries(attempt, lambda error: retry_for if is_retriable(error) else 0.0, wait)

    def forget(self) -> None:
        """Close the connection. The next request finds the coordinator again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def interrupt(self) -> None:
        """End the request in flight, and prevent later ones from waiting for a response. Any thread may call this."""
        self._interrupted.set()
        connection = self._connection
        if connection is not None:
            connection.interrupt()


def find_coordinator(cluster: Cluster, key_type: CoordinatorType, key: str) -> Node:
    """Return the address of a coordinator. Raises KafkaError with COORDINATOR_NOT_AVAILABLE if none is known."""
    version = cluster.version_of(FindCoordinatorRequest)
    request = FindCoordinatorRequest()
    if version >= FIRST_VERSION_OF_TYPES:
        request.key_type = key_type
    if version >= FIRST_VERSION_OF_LISTS:
        request.coordinator_keys = [key]
    else:
        request.key = key
    response: FindCoordinatorResponse = cluster.send(request, version)
    found = response.coordinators[0] if version >= FIRST_VERSION_OF_LISTS else response
    if found.error_code:
        raise answered_error(f"{NAMES[key_type]} {key!r}", found.error_code, found.error_message)
    return Node(found.host, found.port)
