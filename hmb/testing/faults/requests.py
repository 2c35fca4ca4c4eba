"""Faults of requests: a test makes the broker answer with an error, answer late, or not answer at all.

A program that uses Kafka has code for errors, for slow responses and for lost connections. A healthy broker does not
cause these problems, so a test never runs this code. `Faults` makes the broker cause them: it puts wrappers around the
broker's handlers (handler_layers.py), and a wrapper changes the response. Without faults there are no wrappers, so
requests take no extra time.

For example, a test calls `faults.add("PRODUCE", error="NOT_LEADER_OR_FOLLOWER", times=2)`. The broker then answers:
    Produce, request 1 and 2    the response contains the error; the broker appends nothing
    Produce, from request 3     the broker's own handler answers
    Fetch, all requests         the broker's own handler answers

With `cut="before"`, the broker closes the connection before a request takes effect. With `cut="after"`, it
closes the connection afterwards. In both cases, the client gets no response. A producer therefore cannot know
whether the log contains its records. Idempotent producers exist for this reason.

If a fault selects no topic, the whole request gets the fault's error. If a fault selects a topic, only this topic gets
the error, and the broker's handler answers for the other topics. The module broker/security/acls/refusal.py builds the
response with the error.

In a fetch session (KIP-227), a Fetch request names only some of the client's partitions. But for a fault with
the argument `error` or `topic`, the broker must know all partitions. While such a fault applies to a client's
Fetch requests, the broker uses no fetch session with this client.

To end a fetch session, the broker answers the client's next Fetch request with the error
FETCH_SESSION_ID_NOT_FOUND. From then on, the client names all partitions in each request.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any

from hmb.broker.context import RequestContext
from hmb.broker.deferred import final
from hmb.broker.dispatch import Handler
from hmb.broker.errors import CloseConnection
from hmb.broker.security.acls.refusal import error_places, merge, refuse
from hmb.broker.security.acls.splitting import named_by, split
from hmb.defaults import CUTS, Cut
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.enums import FINAL_SESSION_EPOCH, Acks
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages import response_class
from hmb.protocol.messages.fetch import FetchRequest, FetchResponse
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.schema import Request, Response
from hmb.testing.arguments import Seconds, check_text, check_whole_number, seconds
from hmb.testing.errors import FaultError, NameNotFound
from hmb.testing.faults.handler_layers import Answered, HandlerLayers, Layer
from hmb.testing.faults.names import api_key, error_code

LOGGER = logging.getLogger(__name__)
MESSAGE = "a fault of the test"  # the text in each response that has a field for an error message


@dataclass(slots=True, eq=False)
class Fault:
    """A rule of a test: for some requests, the broker sends an error, responds late, or does not respond.

    Two faults are never equal, even if all their fields have the same values. So `Faults.remove` always removes
    exactly the fault that the caller passes.
    """

    api: ApiKey
    topic: str | None
    partition: int | None
    client_id: str | None
    skip: int  # the number of matching requests before the first request that the fault changes
    times: int | None  # the largest number of requests that the fault changes; None: no limit
    error: ErrorCode | None
    delay: float  # seconds
    drop: bool
    cut: Cut | None
    throttle_ms: int
    takes_effect: bool
    count: int = 0  # the number of requests that the fault has changed

    @property
    def needs_names(self) -> bool:
        """Whether the broker must know all partitions of a Fetch request to simulate this fault.

        In a fetch session, a Fetch request names only some partitions. If this property is true, the broker uses no
        fetch session with a client whose requests this fault can change. These requests then name all partitions.
        """
        return self.topic is not None or self.error is not None

    @property
    def is_over(self) -> bool:
        return self.times is not None and self.count >= self.times

    @property
    def effect(self) -> str:
        """The effect of the fault as a text, for example `error=NOT_LEADER_OR_FOLLOWER, delay=0.5`."""
        error = None if self.error is None else self.error.name
        values = {"error": error, "delay": self.delay, "drop": self.drop, "cut": self.cut}
        values |= {"throttle_ms": self.throttle_ms, "takes_effect": self.takes_effect}
        return ", ".join(f"{name}={value}" for name, value in values.items() if value)

    def is_for(self, request: Request, context: RequestContext) -> bool:
        """Return True if the fault matches the request's API and client, and has not reached its limit `times`."""
        return self.api == request.api_key and self.client_id in (None, context.header.client_id) and not self.is_over

    def selects(self, topic: str, partition: int | None) -> bool:
        return topic == self.topic and self.partition in (None, partition)


class Faults:
    """The faults of requests to one broker. Thread-safe. A `with faults:` block removes all faults at its end."""

    def __init__(self, layers: HandlerLayers) -> None:
        """Create an object without faults. To simulate faults, `add` wraps the broker's handlers (`layers`)."""
        self._layers = layers
        self._faults: list[Fault] = []
        self._lock = threading.Lock()  # guards the list of faults and the counts of each fault

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
        delay: Seconds = 0.0,
        drop: bool = False,
        cut: Cut | None = None,
        throttle_ms: int = 0,
        takes_effect: bool = False,
    ) -> Fault:
        """Add a fault for requests of an API, and return it.

        The fault changes only requests that match `topic`, `partition` and `client_id`. If one of them is None, every
        value matches. With `nth=3`, for example, the fault does not change the first two matching requests. It changes
        at most `times` requests (None: no limit).

        Raises FaultError if an argument is wrong, or if the arguments do not fit together.

        These arguments set the effect:

        - `error`: answer with this error code for the selected topics, and do not handle the request for these topics
        - `takes_effect`: handle the request normally, but answer with `error`
        - `delay`: wait for this time (seconds, or a text such as `500ms`) before the request is handled
        - `drop`: handle the request, but send no response
        - `cut`: close the connection, either "before" or "after" the request takes effect
        - `throttle_ms`: put this throttle time (ms) into the response
        """
        try:
            key, code = api_key(api), None if error is None else error_code(error)
        except NameNotFound as unknown:
            raise FaultError(str(unknown)) from None
        for name, number in {"partition": partition, "nth": nth, "times": times, "throttle_ms": throttle_ms}.items():
            check_whole_number(name, number)
        check_text("topic", topic)
        check_text("client_id", client_id)
        fault = Fault(
            *(key, topic, partition, client_id, nth - 1, times, code),
            *(seconds("delay", delay), drop, cut, throttle_ms, takes_effect),
        )
        _check(fault)
        with self._lock:
            self._faults.append(fault)
            self._layers.wrap(fault.api, Layer.FAULTS, self._handle)
        return fault

    def remove(self, fault: Fault) -> None:
        """Remove a fault. Do nothing if the fault is already removed, for example by `clear`."""
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
        """The existing faults, oldest first."""
        with self._lock:
            return list(self._faults)

    @contextmanager
    def during(self, api: str | ApiKey, **options: Any) -> Iterator[Fault]:
        """Add a fault with the arguments of `add`, and remove this fault at the end of the `with` block."""
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
            request.session_epoch = FINAL_SESSION_EPOCH
        fault = self._find(request, context)
        if fault is None:
            return handler(request, context)
        LOGGER.info("a fault applies to the %s request of the client %r: %s",
                    fault.api.name, context.header.client_id, fault.effect)  # fmt: skip
        if fault.delay:
            context.broker.stop.requested.wait(fault.delay)  # If the broker stops, the wait ends early.
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
        """Return the first fault that must change this request, or None.

        A fault can skip requests before it changes the first one. The field `skip` contains the number of requests that
        a fault must still skip. The field `count` contains the number of requests that it has changed. The method
        updates both fields.
        """
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
    """Return the response to a request, as the rule `fault` requires.

    - If the fault has no error code, the broker's own handler answers.
    - If the fault has an error code and selects a topic or a partition, only this part of the response contains the
      error. The handler answers the other parts.
    - If the fault has an error code but no topic, the whole response contains the error.

    If `takes_effect` is true, the handler handles the whole request, but the response still contains the error.
    """
    if fault.error is None:
        return final(handler(request, context))
    refused, rest = request, None
    if fault.topic is not None:
        refused, rest = split(request, context, fault.selects)
    error = refuse(refused, context.version, fault.error, MESSAGE)
    if fault.takes_effect:
        rest = request
    elif isinstance(request, MetadataRequest) and rest is None:
        # Clients ignore a Metadata response without brokers, and the response `error` contains none. So take the
        # brokers from the handler's response to a request without topics.
        rest = copy(request)
        rest.topics = []
    if rest is not None:
        response = final(handler(rest, context))
        return None if response is None else merge(response, error, context.version)
    return None if isinstance(request, ProduceRequest) and request.acks == Acks.NONE else error


def _check(fault: Fault) -> None:
    """Raise FaultError if the values of a fault do not fit together or are out of range."""
    name = fault.api.name
    if fault.error is not None and not error_places(fault.api):
        raise FaultError(f"{name} responses contain no error code")
    if fault.takes_effect and fault.error is None:
        raise FaultError("the parameter 'takes_effect' requires the parameter 'error'")
    if fault.cut not in (None, *CUTS):
        raise FaultError(f"cut={fault.cut!r}: the value must be {' or '.join(map(repr, CUTS))}")
    if fault.partition is not None and fault.topic is None:
        raise FaultError("the parameter 'partition' requires the parameter 'topic'")
    for selector in ("topic", "partition"):
        if getattr(fault, selector) is not None and selector not in named_by(fault.api):
            raise FaultError(f"{name} requests contain no {selector}")
    if fault.throttle_ms and "throttle_time_ms" not in response_class(fault.api).fields:
        raise FaultError(f"{name} responses contain no throttle time")
    if fault.skip < 0 or (fault.times is not None and fault.times < 1) or fault.delay < 0:
        raise FaultError("the parameters 'nth' and 'times' must be 1 or more, and 'delay' must be 0 or more")
    if fault.error is None and not (fault.delay or fault.drop or fault.cut or fault.throttle_ms):
        raise FaultError("the fault has no effect; use the parameter 'error', 'delay', 'drop', 'cut' or 'throttle_ms'")
