"""The coordinator of a transactional id or of a group, asked until it answers.

One broker keeps a transactional id's state, and one a group's offsets: the leader of that partition of
`__transaction_state`, or `__consumer_offsets`, into which the name hashes. Any broker knows who that is
(FindCoordinator). It moves when its broker dies: then the old one says NOT_COORDINATOR, or nothing at all, and is to be
looked for anew. The one that takes over has to load its state first, and a transaction that has just ended may need a
moment until its markers are written (CONCURRENT_TRANSACTIONS): all that is waited for here.
"""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.errors import answered_error
from hmb.client.metadata import Cluster, Node
from hmb.protocol.enums import CoordinatorType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from hmb.protocol.schema import Request

_NAMES = {CoordinatorType.GROUP: "group", CoordinatorType.TRANSACTION: "transactional id"}
MOVED = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
FIRST_FIND_OF_SEVERAL = FindCoordinatorRequest.first_version("coordinator_keys")
MARKERS_TAKE = 0.02  # seconds until the transaction before is over, about

Refusals = Callable[[Any], Iterable[tuple[object, int]]]  # answer -> (where or None, error code)


class Coordinator:
    """A connection to wherever the coordinator of one name is; one thread at a time."""

    def __init__(
        self, cluster: Cluster, key_type: CoordinatorType, key: str, patience: float, retry_backoff: float
    ) -> None:
        self._cluster, self._key_type, self._key = cluster, key_type, key
        self._patience, self._retry_backoff = patience, retry_backoff
        self._connection: Connection | None = None
        self._closed = threading.Event()

    def __str__(self) -> str:
        return f"{_NAMES[self._key_type]} {self._key!r}"

    def ask(self, kind: type[Request], newest: int, make: Callable[[int], Request], refusals: Refusals) -> Any:
        """The answer to a request, which `make` makes for a version of at most `newest`.

        `refusals` takes out of an answer what was refused. What time may help is tried again, until the patience ends;
        all else is raised: KafkaError, ConnectionFailed.
        """
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return self._ask_once(kind, newest, make, refusals)
            except ConnectionFailed as error:
                self.forget()
                failure: ConnectionFailed | KafkaError = error
            except KafkaError as error:
                if error.code in MOVED:
                    self.forget()
                if not error.code.retriable:
                    raise
                failure = error
            finally:
                if self._closed.is_set():
                    self.forget()
            is_ending = isinstance(failure, KafkaError) and failure.code is ErrorCode.CONCURRENT_TRANSACTIONS
            pause = min(self._retry_backoff, MARKERS_TAKE) if is_ending else self._retry_backoff
            if time.monotonic() >= deadline or self._closed.wait(pause):
                raise failure

    def forget(self) -> None:
        """Look for it anew, the next time."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """From any thread: end what is waited for; whoever waits closes the connection, and else `forget` does."""
        self._closed.set()
        connection = self._connection
        if connection is not None:
            connection.interrupt()

    def _ask_once(self, kind: type[Request], newest: int, make: Callable[[int], Request], refusals: Refusals) -> Any:
        if self._connection is None:
            self._connection = self._cluster.connect(find_coordinator(self._cluster, self._key_type, self._key))
        version = self._connection.version_of(kind, newest)
        response = self._connection.send(make(version), version)
        for where, code in refusals(response):
            if code:
                raise answered_error(where or self, code)
        return response


def find_coordinator(cluster: Cluster, key_type: CoordinatorType, key: str) -> Node:
    """Where the coordinator of this name is. KafkaError while the cluster knows none (COORDINATOR_NOT_AVAILABLE)."""
    version = cluster.version_of(FindCoordinatorRequest)
    request = FindCoordinatorRequest()
    if version > 0:
        request.key_type = key_type
    if version >= FIRST_FIND_OF_SEVERAL:
        request.coordinator_keys = [key]
    else:
        request.key = key
    response: FindCoordinatorResponse = cluster.send(request, version)
    found = response.coordinators[0] if version >= FIRST_FIND_OF_SEVERAL else response
    if found.error_code:
        raise answered_error(f"{_NAMES[key_type]} {key!r}", found.error_code, found.error_message)
    return Node(found.host, found.port)
