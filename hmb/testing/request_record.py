"""Records the requests that clients send to a broker, and the broker's responses.

A test of a program that uses Kafka often checks which requests the program has sent. For example: a consumer has sent
exactly one OffsetCommit, a producer has sent nothing after an error, or a client has repeated a failed request. A
`RequestRecord` therefore keeps each request together with its response:
    broker.requests.clear()
    ...                                       # the program runs
    commit, = broker.requests.of("OffsetCommit")
    assert commit.errors == () and commit.duration < 1

The broker begins to record when a test first uses `Broker.requests` or `Broker.wait_for`. Before this first
use, and after `stop`, requests take no extra time. The record contains only requests that reach a handler. Some
requests never do: for example, requests that the broker cannot decode, requests in unsupported versions, and
requests that ACLs forbid.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hmb.broker.context import RequestContext
from hmb.broker.deferred import Deferred
from hmb.broker.dispatch import Handler
from hmb.broker.errors import CloseConnection
from hmb.broker.handlers import HANDLERS
from hmb.broker.security.acls.refusal import ERROR_FIELDS
from hmb.broker.security.acls.splitting import split
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages import api_name
from hmb.protocol.schema import Request, Response, Struct
from hmb.testing.errors import RequestsMissing
from hmb.testing.faults.handler_layers import Answered, HandlerLayers, Layer
from hmb.testing.faults.names import api_key, error_code

MAX_KEPT_REQUESTS = 1000  # the largest number of kept requests; a kept Produce request holds its records in memory
PATIENCE = 10.0  # the default time limit (seconds) of a test that waits for requests
SHOWN = 8  # the largest number of APIs in the message of RequestsMissing


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request of a client, with the broker's response."""

    api: str  # the name of the API, such as "JoinGroup"
    version: int
    client_id: str | None
    request: Request
    response: Response | None  # None if the broker sent no response
    errors: tuple[str, ...]  # the names of the different error codes in the response, in order of appearance
    topics: tuple[str, ...]  # the names of the topics in the request
    duration: float  # the time from the start of the handler until the response is ready (seconds)
    closed: str | None  # why the broker closed the connection instead of sending a response; otherwise None

    def as_json(self) -> dict[str, Any]:
        """Return an object for JSON: all attributes except `request` and `response`. `duration_ms` is in ms."""
        names = ("api", "version", "client_id", "topics", "errors")
        values = {name: getattr(self, name) for name in names}
        return {**values, "duration_ms": round(self.duration * 1000, 3), "closed": self.closed}


class RequestRecord:
    """The last 1,000 requests that a broker has handled, from the oldest to the newest. Thread-safe.

    Like a list, a `RequestRecord` supports `len`, iteration and integer indexes. If it already contains 1,000
    requests, each new request replaces the oldest request. `dropped` is the number of replaced requests.
    """

    def __init__(self, layers: HandlerLayers) -> None:
        self._layers = layers
        self._kept: deque[RecordedRequest] = deque(maxlen=MAX_KEPT_REQUESTS)
        self.dropped = 0
        self.is_recording = False
        self._changed = threading.Condition()  # guards all fields; notifies waiting threads after each recorded request

    def start(self) -> None:
        """Begin to record requests. Do nothing if the recording has already begun."""
        with self._changed:
            if self.is_recording:
                return
            self.is_recording = True
        for api in HANDLERS:
            self._layers.wrap(api, Layer.RECORD, self._handle)

    def stop(self) -> None:
        """Stop recording. The requests that are already recorded stay in the record."""
        with self._changed:
            if not self.is_recording:
                return
            self.is_recording = False
        for api in HANDLERS:
            self._layers.unwrap(api, Layer.RECORD)

    def clear(self) -> None:
        """Remove all requests from the record."""
        with self._changed:
            self._kept.clear()
            self.dropped = 0

    def __iter__(self) -> Iterator[RecordedRequest]:
        with self._changed:
            return iter(list(self._kept))

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, index: int) -> RecordedRequest:
        with self._changed:
            return self._kept[index]

    def of(
        self,
        api: str | ApiKey,
        *,
        topic: str | None = None,
        client_id: str | None = None,
        error: str | ErrorCode | None = None,
    ) -> list[RecordedRequest]:
        """Return the recorded requests of an API, from the oldest to the newest.

        The result contains only requests that match all given arguments `topic`, `client_id` and `error`. A request
        matches `error` if its response contains this error code. Raises NameNotFound if the API or the error is
        unknown.
        """
        name = api_name(api_key(api))
        code = None if error is None else error_code(error).name
        return [
            each
            for each in self
            if each.api == name
            and (topic is None or topic in each.topics)
            and (client_id is None or client_id == each.client_id)
            and (code is None or code in each.errors)
        ]

    def wait_for(
        self, api: str | ApiKey, count: int = 1, *, timeout: float = PATIENCE, **selection: Any
    ) -> list[RecordedRequest]:
        """Wait until at least `count` matching requests are recorded, and return all matching requests.

        `selection` can contain the keyword arguments `topic`, `client_id` and `error` of `RequestRecord.of`. The method
        also counts already recorded requests. To count only new requests, call `clear` before this method.

        Raises RequestsMissing if too few requests are recorded after `timeout` seconds of real time. Raises
        NameNotFound if the API or the error is unknown.
        """
        with self._changed:
            self._changed.wait_for(lambda: len(self.of(api, **selection)) >= count, timeout)
            found = self.of(api, **selection)
            if len(found) < count:
                raise RequestsMissing(self._missing(api, count, len(found), timeout, selection))
            return found

    def _missing(self, api: str | ApiKey, count: int, seen: int, timeout: float, selection: dict[str, Any]) -> str:
        wanted = " ".join([api_name(api_key(api)), *(f"{name}={value}" for name, value in selection.items())])
        came = ", ".join(f"{number} {name}" for name, number in Counter(each.api for each in self).most_common(SHOWN))
        dropped = f" ({self.dropped} older requests were forgotten)" if self.dropped else ""
        return f"waited {timeout:g} s for {count} requests {wanted}: {seen} came; recorded: {came or 'none'}{dropped}"

    def _handle(self, handler: Handler, request: Request, context: RequestContext) -> Answered:
        begun = time.perf_counter()
        try:
            response = handler(request, context)
        except CloseConnection as why:
            self._record(request, None, context, begun, str(why))
            raise
        if isinstance(response, Deferred):
            return Deferred(lambda: self._result(request, response, context, begun))
        self._record(request, response, context, begun)
        return response

    def _result(
        self, request: Request, deferred: Deferred[Response], context: RequestContext, begun: float
    ) -> Response:
        response = deferred.result()
        self._record(request, response, context, begun)
        return response

    def _record(
        self,
        request: Request,
        response: Response | None,
        context: RequestContext,
        begun: float,
        closed: str | None = None,
    ) -> None:
        key = ApiKey(request.api_key)
        errors = tuple(dict.fromkeys(_errors(response))) if response is not None else ()
        recorded = RecordedRequest(
            *(api_name(key), context.version, context.header.client_id, request, response, errors),
            *(_topics(request, context), time.perf_counter() - begun, closed),
        )
        with self._changed:
            self.dropped += len(self._kept) == MAX_KEPT_REQUESTS
            self._kept.append(recorded)
            self._changed.notify_all()


def _errors(struct: Struct) -> Iterator[str]:
    """Yield the names of all error codes in a message, except NONE."""
    for name in struct.fields:
        value = getattr(struct, name)
        if name in ERROR_FIELDS and value:
            yield ErrorCode(value).name
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Struct):
                yield from _errors(item)


def _topics(request: Request, context: RequestContext) -> tuple[str, ...]:
    """Return the names of the topics in a request, without duplicates, in the order of the request."""
    names: dict[str, None] = {}

    def note(name: str, partition: int | None) -> bool:
        names[name] = None
        return False

    split(request, context, note)
    return tuple(names)
