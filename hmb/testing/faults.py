"""Faults: a broker that answers an error, late, or not at all, when a test wants it.

A program that uses Kafka has code for errors, for slow answers and for lost connections. A healthy broker never makes
that code run. `Faults` wraps handlers of the broker (handler_layers.py). A broker without faults does no additional
work::

    faults.add("PRODUCE", error="NOT_LEADER_OR_FOLLOWER", times=2)

    request 1, 2 (Produce)    error, nothing is appended
    request 3    (Produce)    the broker's own handler again
    Fetch                     the broker's own handler all the time

A request that is lost before it takes effect and one that is lost afterwards look the same to a client. Only the
broker's log shows the difference, and idempotent producers exist because of it. So `cut` has both forms.

An error answers for the whole request, or for the topic and partition that the fault selects. The handler answers for
the others. `refusal.py` builds the response of any API from its message class.

A request of a fetch session (KIP-227) names only the partitions that changed. A fault with a topic or an error needs
all names. So while such a fault exists, the broker ends fetch sessions: the client gets FETCH_SESSION_ID_NOT_FOUND
once, and then names all partitions in each request.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal

from hmb.broker.context import RequestContext
from hmb.broker.deferred import Deferred
from hmb.broker.dispatch import Handler
from hmb.broker.errors import CloseConnection
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages import response_class
from hmb.protocol.messages.fetch import FetchRequest, FetchResponse
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.schema import Request, Response
from hmb.testing.handler_layers import Answered, HandlerLayers, Layer
from hmb.testing.names import NameNotFound, api_key, error_code
from hmb.testing.refusal import error_places, merge, named_by, refuse, split

Cut = Literal["before", "after"]
NO_SESSION_EPOCH = -1  # the epoch of a Fetch request without a fetch session


class FaultError(ValueError):
    """A fault that cannot exist: the message names the wrong value and the possible ones."""


@dataclass(slots=True, eq=False)
class Fault:
    """One fault, and how often it has happened. Two faults with the same values are two faults."""

    api: ApiKey
    topic: str | None
    partition: int | None
    client_id: str | None
    skip: int  # matching requests that the fault does not change at first
    times: int | None  # None: without a limit
    error: ErrorCode | None
    delay: float  # seconds
    drop: bool
    cut: Cut | None
    throttle_ms: int
    takes_effect: bool
    count: int = 0  # requests that the fault has changed

    @property
    def needs_names(self) -> bool:
        """Whether the fault applies only to requests that name their topics and partitions."""
        return self.topic is not None or self.error is not None

    @property
    def is_over(self) -> bool:
        return self.times is not None and self.count >= self.times

    def is_for(self, request: Request, context: RequestContext) -> bool:
        """Return whether the fault concerns the API and the client of a request."""
        return self.api == request.api_key and self.client_id in (None, context.header.client_id) and not self.is_over

    def selects(self, topic: str, partition: int | None) -> bool:
        return topic == self.topic and self.partition in (None, partition)


class Faults:
    """The faults of one broker. Thread-safe. As a context manager, it removes all faults at the end."""

    def __init__(self, layers: HandlerLayers) -> None:
        """Create an empty list of faults. `layers` contains the broker's handlers."""
        self._layers = layers
        self._faults: list[Fault] = []
        self._lock = threading.Lock()  # This lock guards the list of faults and their counts.

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
        takes_effect: bool = False,
    ) -> Fault:
        """Add a fault for requests of an API, and return it.

        `topic`, `partition` and `client_id` select requests. The fault begins with the `nth` request that matches, and
        happens `times` times (None: always). Raises FaultError if the fault is not possible. The effects:

        - `error`: answer this error code for the selected topics; the request has no effect on them
        - `takes_effect`: with `error`, the request takes effect nevertheless
        - `delay`: handle the request after this time (seconds)
        - `drop`: handle the request, but send no response
        - `cut`: close the connection `before` the request takes effect, or `after` it
        - `throttle_ms`: report this throttle time to the client (ms)
        """
        try:
            key, code = api_key(api), None if error is None else error_code(error)
        except NameNotFound as unknown:
            raise FaultError(str(unknown)) from None
        fault = Fault(
            *(key, topic, partition, client_id, nth - 1, times, code),
            *(delay, drop, cut, throttle_ms, takes_effect),
        )
        _check(fault)
        with self._lock:
            self._faults.append(fault)
            self._layers.wrap(fault.api, Layer.FAULTS, self._handle)
        return fault

    def remove(self, fault: Fault) -> None:
        """Remove a fault. Do nothing if it is removed already, for example by `clear`."""
        with self._lock:
            if fault not in self._faults:
                return
            self._faults.remove(fault)
            if all(other.api != fault.api for other in self._faults):
                self._layers.unwrap(fault.api, Layer.FAULTS)

    def clear(self) -> None:
        """Remove all faults."""
        for fault in self.added:
            self.remove(fault)

    @property
    def added(self) -> list[Fault]:
        """The faults that exist, in the order in which they were added."""
        with self._lock:
            return list(self._faults)

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

    def _handle(self, handler: Handler, request: Request, context: RequestContext) -> Answered:
        if isinstance(request, FetchRequest) and self._needs_names(request, context):
            if request.session_epoch > 0:
                return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            request.session_epoch = NO_SESSION_EPOCH
        fault = self._find(request, context)
        if fault is None:
            return handler(request, context)
        if fault.delay:
            context.broker.stop.requested.wait(fault.delay)  # A stop of the broker ends the wait.
        if fault.cut == "before":
            raise CloseConnection("a fault cuts the connection before the request takes effect")
        response = _answer(fault, handler, request, context)
        if fault.cut == "after":
            raise CloseConnection("a fault cuts the connection after the request took effect")
        if fault.throttle_ms and response is not None:
            response.throttle_time_ms = fault.throttle_ms  # type: ignore[attr-defined]
        return None if fault.drop else response

    def _needs_names(self, request: Request, context: RequestContext) -> bool:
        with self._lock:
            return any(fault.needs_names and fault.is_for(request, context) for fault in self._faults)

    def _find(self, request: Request, context: RequestContext) -> Fault | None:
        """Return the first fault that changes this request, and count the request."""
        with self._lock:
            for fault in self._faults:
                if not fault.is_for(request, context):
                    continue
                if fault.topic is not None and split(request, context, fault.selects)[0] is None:
                    continue
                if fault.skip:
                    fault.skip -= 1
                    continue
                fault.count += 1
                return fault
        return None


def _answer(fault: Fault, handler: Handler, request: Request, context: RequestContext) -> Response | None:
    """Return the handler's response, with the fault's error in the parts that the fault selects."""
    if fault.error is None:
        return _final(handler(request, context))
    refused, rest = request, None
    if fault.topic is not None:
        refused, rest = split(request, context, fault.selects)
    error = refuse(refused, context.version, fault.error)
    if fault.takes_effect:
        rest = request
    elif isinstance(request, MetadataRequest) and rest is None:
        rest = copy(request)  # A client ignores metadata without brokers.
        rest.topics = []
    if rest is not None:
        response = _final(handler(rest, context))
        return None if response is None else merge(response, error, context.version)
    return None if isinstance(request, ProduceRequest) and request.acks == 0 else error


def _final(response: Answered) -> Response | None:
    return response.result() if isinstance(response, Deferred) else response


def _check(fault: Fault) -> None:
    """Raise FaultError for a fault that cannot exist."""
    name = fault.api.name
    if fault.error is not None and not error_places(fault.api):
        raise FaultError(f"responses of {name} have no error code")
    if fault.takes_effect and fault.error is None:
        raise FaultError("takes_effect needs an error")
    if fault.cut not in (None, "before", "after"):
        raise FaultError(f"cut={fault.cut!r}: must be 'before' or 'after'")
    if fault.partition is not None and fault.topic is None:
        raise FaultError("partition needs a topic")
    for selector in ("topic", "partition"):
        if getattr(fault, selector) is not None and selector not in named_by(fault.api):
            raise FaultError(f"requests of {name} name no {selector}")
    if fault.throttle_ms and "throttle_time_ms" not in response_class(fault.api).fields:
        raise FaultError(f"responses of {name} have no throttle time")
    if fault.skip < 0 or (fault.times is not None and fault.times < 1) or fault.delay < 0:
        raise FaultError("nth and times must be 1 or more, and delay 0 or more")
    if fault.error is None and not (fault.delay or fault.drop or fault.cut or fault.throttle_ms):
        raise FaultError("the fault has no effect; give error, delay, drop, cut or throttle_ms")
