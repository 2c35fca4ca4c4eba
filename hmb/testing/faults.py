"""Faults: a broker that answers an error, late, or not at all, when a test wants it.

A program that uses Kafka has code for errors, for slow answers and for lost connections. A healthy broker never makes
that code run. `Faults` replaces handlers in the broker's table of handlers (hmb/broker/handlers/__init__.py), so a
broker without faults does no additional work::

    faults.add("PRODUCE", error="NOT_LEADER_OR_FOLLOWER", times=2)

    request 1, 2 (Produce)    error, nothing is appended
    request 3    (Produce)    the broker's own handler again
    Fetch                     the broker's own handler all the time

A request that is lost before it takes effect and one that is lost afterwards look the same to a client. Only the
broker's log shows the difference, and idempotent producers exist because of it. So `cut` has both forms.

Limits: an error applies to the whole request. Errors exist for Produce, and for APIs whose response has one error code
(ERRORS). A topic selects only Produce requests, because a Fetch in a fetch session does not name its topics. All other
faults exist for every API.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from hmb.broker.context import RequestContext
from hmb.broker.deferred import Deferred
from hmb.broker.dispatch import Handler
from hmb.broker.errors import CloseConnection
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages import response_class
from hmb.protocol.messages.produce import ProduceRequest, ProduceResponse
from hmb.protocol.schema import Request, Response

Cut = Literal["before", "after"]
SINGLE_CODE = frozenset(
    {
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.END_TXN,
        ApiKey.HEARTBEAT,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
    }
)
ERRORS = SINGLE_CODE | {ApiKey.PRODUCE}


class FaultError(ValueError):
    """A fault that cannot exist: the message names the wrong value and the possible ones."""


@dataclass(slots=True)
class Fault:
    """One fault, and how often it has happened."""

    api: ApiKey
    topic: str | None
    partition: int | None
    client_id: str | None
    skip: int  # requests that match and are left alone before the fault begins
    times: int | None  # None: always
    error: ErrorCode | None
    delay: float  # seconds
    drop: bool
    cut: Cut | None
    throttle_ms: int
    count: int = 0  # requests that the fault has changed

    def matches(self, request: Request, context: RequestContext) -> bool:
        if self.client_id is not None and context.header.client_id != self.client_id:
            return False
        if self.topic is None:
            return True
        named = _partitions_of(request, context)
        return any(topic == self.topic and self.partition in (None, number) for topic, number in named)


class Faults:
    """The faults of one broker. Thread-safe. As a context manager, it removes all faults at the end."""

    def __init__(self, handlers: dict[ApiKey, Handler]) -> None:
        """Faults replace handlers in this table of a broker."""
        self._handlers = handlers
        self._originals: dict[ApiKey, Handler] = {}
        self._faults: list[Fault] = []
        self._lock = threading.Lock()  # guards the list, and the numbers of its faults

    def add(
        self,
        api: str | ApiKey,
        *,
        topic: str | None = None,
        partition: int | None = None,
        client_id: str | None = None,
        nth: int = 1,
        times: int | None = None,
        error: str | ErrorCode | None = None,
        delay: float = 0.0,
        drop: bool = False,
        cut: Cut | None = None,
        throttle_ms: int = 0,
    ) -> Fault:
        """Add a fault for requests of an API, and return it.

        `topic` and `partition` select Produce requests, and `client_id` requests of every API. The fault begins with
        the `nth` request that matches, and happens `times` times (None: always). The effects:

        - `error`: answer this error code; the request has no effect
        - `delay`: handle the request after this time (seconds)
        - `drop`: handle the request, but send no response
        - `cut`: close the connection `before` the request takes effect, or `after` it
        - `throttle_ms`: report this throttle time to the client (ms)

        Raises FaultError.
        """
        fault = Fault(
            *(_api(api), topic, partition, client_id, nth - 1, times, _error(error)),
            *(delay, drop, cut, throttle_ms),
        )
        _check(fault)
        with self._lock:
            self._faults.append(fault)
            if fault.api not in self._originals:
                self._originals[fault.api] = self._handlers[fault.api]
                self._handlers[fault.api] = partial(self._handle, self._handlers[fault.api])
        return fault

    def remove(self, fault: Fault) -> None:
        """Remove a fault. Raises ValueError if it is removed already."""
        with self._lock:
            self._faults.remove(fault)
            if all(other.api != fault.api for other in self._faults):
                self._handlers[fault.api] = self._originals.pop(fault.api)

    def clear(self) -> None:
        """Remove all faults."""
        for fault in list(self._faults):
            self.remove(fault)

    @contextmanager
    def during(self, api: str | ApiKey, **options: Any) -> Iterator[Fault]:
        """Add a fault (see `add`), and remove it at the end of the `with` block."""
        fault = self.add(api, **options)
        try:
            yield fault
        finally:
            self.remove(fault)

    def __enter__(self) -> Faults:
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()

    def _handle(self, handler: Handler, request: Request, context: RequestContext) -> Response | Deferred | None:
        fault = self._find(request, context)
        if fault is None:
            return handler(request, context)
        if fault.delay:
            context.broker.stop.requested.wait(fault.delay)  # A stop of the broker ends the wait.
        if fault.cut == "before":
            raise CloseConnection("a fault cuts the connection before the request takes effect")
        if fault.error is not None:
            return _error_response(request, context, fault.error)
        response = handler(request, context)
        if isinstance(response, Deferred):
            response = response.result()
        if fault.cut == "after":
            raise CloseConnection("a fault cuts the connection after the request took effect")
        if fault.throttle_ms and response is not None:
            response.throttle_time_ms = fault.throttle_ms  # type: ignore[attr-defined]
        return None if fault.drop else response

    def _find(self, request: Request, context: RequestContext) -> Fault | None:
        """Return the first fault that changes this request, and count the request."""
        with self._lock:
            for fault in self._faults:
                is_over = fault.times is not None and fault.count >= fault.times
                if fault.api != request.api_key or is_over or not fault.matches(request, context):
                    continue
                if fault.skip:
                    fault.skip -= 1
                    continue
                fault.count += 1
                return fault
        return None


def _check(fault: Fault) -> None:
    """Raise FaultError for a fault that cannot exist."""
    if fault.error is not None and fault.api not in ERRORS:
        names = ", ".join(sorted(each.name for each in ERRORS))
        raise FaultError(f"no error for {fault.api.name}; errors exist for {names}")
    if fault.cut not in (None, "before", "after"):
        raise FaultError(f"cut={fault.cut!r}: must be 'before' or 'after'")
    if fault.topic is not None and fault.api is not ApiKey.PRODUCE:
        raise FaultError(f"topic selects requests of PRODUCE only, not of {fault.api.name}")
    if fault.partition is not None and fault.topic is None:
        raise FaultError("partition needs a topic")
    if fault.skip < 0 or (fault.times is not None and fault.times < 1) or fault.delay < 0:
        raise FaultError("nth and times must be 1 or more, and delay 0 or more")
    if fault.error is None and not (fault.delay or fault.drop or fault.cut or fault.throttle_ms):
        raise FaultError("the fault has no effect; give error, delay, drop, cut or throttle_ms")


def _api(api: str | ApiKey) -> ApiKey:
    if isinstance(api, ApiKey):
        return api
    try:
        return ApiKey[api.upper()]
    except KeyError:
        raise FaultError(f"no API has the name {api!r}; examples: PRODUCE, FETCH, JOIN_GROUP") from None


def _error(error: str | ErrorCode | None) -> ErrorCode | None:
    if error is None or isinstance(error, ErrorCode):
        return error
    try:
        return ErrorCode[error.upper()]
    except KeyError:
        raise FaultError(f"no error has the name {error!r}; example: NOT_LEADER_OR_FOLLOWER") from None


def _partitions_of(request: Request, context: RequestContext) -> set[tuple[str, int]]:
    """Return the partitions of a Produce request: `{(topic, partition)}`.

    From version 13 on, the request contains the ids of the topics.
    """
    assert isinstance(request, ProduceRequest)
    found = set[tuple[str, int]]()
    for each in request.topic_data:
        try:
            name = context.broker.topics.find(each.name or None, each.topic_id).name
        except KafkaError:  # The topic does not exist.
            name = each.name
        found.update((name, data.index) for data in each.partition_data)
    return found


def _error_response(request: Request, context: RequestContext, code: ErrorCode) -> Response | None:
    if not isinstance(request, ProduceRequest):
        return response_class(request.api_key)(error_code=code)
    if request.acks == 0:
        return None
    topic_type = ProduceResponse.TopicProduceResponse
    partition_type = topic_type.PartitionProduceResponse
    return ProduceResponse(
        responses=[
            topic_type(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    partition_type(index=each.index, error_code=code, base_offset=-1) for each in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )
