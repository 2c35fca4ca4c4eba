"""Connects a client to the coordinator of a consumer group or of a transactional id.

The *coordinator* of a group is the broker that stores the members and the committed offsets of the group. This broker
is the leader of one partition of the topic `__consumer_offsets`. The coordinator of a transactional id is the broker
that stores the state of this id's transactions. This broker is the leader of one partition of `__transaction_state`.

The hash of a group id selects the partition of `__consumer_offsets`. The hash of a transactional id selects the
partition of `__transaction_state`. A client need not compute a hash: any broker answers a FindCoordinator request with
the coordinator's address. (Kafka 0.8.2 called this request ConsumerMetadata.)

When a coordinator stops, another broker becomes the coordinator. The old coordinator then answers NOT_COORDINATOR, or
does not answer at all, and the client must find the new coordinator. The new coordinator answers
COORDINATOR_LOAD_IN_PROGRESS until it has loaded its state. A coordinator answers CONCURRENT_TRANSACTIONS while it is
still writing the commit or abort markers of the previous transaction. After each of these errors, the method `ask`
sends the request again. The method `send` sends a request only once, and the caller of `send` handles the errors.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.errors import response_error
from hmb.client.metadata import Cluster, Node
from hmb.client.retries import is_retriable, with_retries
from hmb.protocol.enums import CoordinatorType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.find_coordinator import (
    FIRST_VERSION_OF_LISTS,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from hmb.protocol.schema import Request

NAMES = {
    CoordinatorType.GROUP: "group",
    CoordinatorType.TRANSACTION: "transactional id",
    CoordinatorType.SHARE: "share-partition",
}
MOVED = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
# When a member leaves its group, `close` waits at most this time (in seconds) for the coordinator's response.
LEAVE_TIMEOUT = 5.0
FIRST_FIND_COORDINATOR_VERSION_OF_TYPES = FindCoordinatorRequest.first_version("key_type")
MARKER_PAUSE = 0.02  # seconds; a broker usually writes the markers of a transaction within this time

RequestFor = Callable[[int], Request]  # a function that takes a version, and returns the request for this version
# A function that takes a response, and returns pairs of a partition (or None) and an error code.
ErrorCodes = Callable[[Any], Iterable[tuple[object, int]]]


class CoordinatorConnection:
    """A connection to the coordinator of one group or transactional id.

    Only one thread may use the connection. Any other thread may only call `interrupt`.
    """

    def __init__(self, cluster: Cluster, key_type: CoordinatorType, key: str) -> None:
        self._cluster, self._key_type, self._key = cluster, key_type, key
        self._connection: Connection | None = None
        self._interrupted = threading.Event()

    def __str__(self) -> str:
        return f"{NAMES[self._key_type]} {self._key!r}"

    def connection(self) -> Connection:
        """Return the connection to the coordinator. If the coordinator is unknown, find it first.

        Raises ConnectionFailed if no broker answers, and KafkaError with COORDINATOR_NOT_AVAILABLE if the brokers know
        no coordinator at the moment.
        """
        if self._connection is None:
            node = find_coordinator(self._cluster, self._key_type, self._key)
            self._connection = self._cluster.connect(node)
        return self._connection

    def feature(self, name: str) -> int:
        """Return the level of a cluster feature, or 0 if the coordinator has not reported this feature.

        The coordinator reports its features when the client connects. This method opens no connection, so the caller
        must first send another request to the coordinator.
        """
        return 0 if self._connection is None else self._connection.features.get(name, 0)

    def send(
        self, kind: type[Request], request: RequestFor, newest: int | None = None, timeout: float | None = None
    ) -> Any:
        """Send one request to the coordinator, and return the response.

        `newest` is the newest request version that the caller allows. None allows every version. Raises
        ConnectionFailed if the connection is lost. The next call then looks up the coordinator again.
        """
        connection = self.connection()
        try:
            version = connection.version_of(kind, newest)
            connection.post(request(version), version)
            # Another thread may have called `interrupt` before the connection was open. Without this check, `receive`
            # would still wait for the response.
            if self._interrupted.is_set():
                connection.interrupt()
            return connection.receive(timeout)
        except ConnectionFailed:
            self.forget()
            raise
        except BaseException:  # Close the connection, so that no later request receives this response.
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
        """Send a request and return its response. After a temporary error, send the request again.

        The retries end after `retry_for` seconds; `retry_backoff` (seconds) is the pause before each retry.
        `error_codes` is a function that returns the error codes in a response. If the last attempt also fails, the
        method raises its error: ConnectionFailed or KafkaError.
        """

        def attempt() -> Any:
            try:
                response = self.send(kind, request, newest)
                for partition, code in error_codes(response):
                    if code:
                        raise response_error(partition or self, code)
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
        """Close the connection, so that the next request looks up the coordinator again.

        The caller calls this method when another broker may have become the coordinator.
        """
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def interrupt(self) -> None:
        """Interrupt the request in flight, so that it fails immediately. Any thread may call this method.

        All later requests also fail.
        """
        self._interrupted.set()
        connection = self._connection
        if connection is not None:
            connection.interrupt()


def find_coordinator(cluster: Cluster, key_type: CoordinatorType, key: str) -> Node:
    """Return the address of the coordinator of a group, of a transactional id or of a share-partition.

    Raises KafkaError with COORDINATOR_NOT_AVAILABLE if the brokers know no coordinator at the moment.
    """
    version = cluster.version_of(FindCoordinatorRequest)
    request = FindCoordinatorRequest()
    if version >= FIRST_FIND_COORDINATOR_VERSION_OF_TYPES:
        request.key_type = key_type
    if version >= FIRST_VERSION_OF_LISTS:
        request.coordinator_keys = [key]
    else:
        request.key = key
    response: FindCoordinatorResponse = cluster.send(request, version)
    found = response.coordinators[0] if version >= FIRST_VERSION_OF_LISTS else response
    if found.error_code:
        raise response_error(f"{NAMES[key_type]} {key!r}", found.error_code, found.error_message)
    return Node(found.host, found.port)
