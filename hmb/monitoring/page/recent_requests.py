"""Stores the latest requests that clients have sent, so that a web page can show their details.

The broker always counts requests. It records the details of single requests only while a user looks at them, on a page
or with `hmb top`. The page calls `view` again and again, and `hmb top` calls `slowest`. Each call starts the recording
or makes it last longer. `view` makes it last 5 s (RECORDING), and the caller of `slowest` chooses the time.

The recording of one request takes about 0.1 ms, so the recorder does not record every request. It records these
requests:
- the first MAX_RECORDED_PER_SECOND requests of each second
- each request that the recorder *follows* (see below)
- each request that is one of the slowest requests of its API so far

The recorder stores the last 100 recorded requests (KEPT), and the 20 slowest requests of each API (SLOWEST).

Every PAUSE seconds, the recorder *follows* one request of each API: it stores which HMB functions handle this request
(with `sys.setprofile`). The list `SeenRequest.way` contains the calls of these functions in order. For each API, the
recorder keeps the last 20 followed requests (FOLLOWED), so that a user has time to open one of them. For example, the
calls for a Produce request begin like this:
    broker/network/connection.py   AcceptedConnection._serve
    broker/dispatch.py             Dispatcher.begin
    broker/handlers/produce.py     handle
    storage/log.py                 Log.append

The recorder does not store the request itself, which may contain many records. It stores only short texts about the
request, such as the values of its fields. So Python can free the memory of the request.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import UUID

import hmb
from hmb.broker.context import RequestContext
from hmb.broker.deferred import Deferred
from hmb.broker.dispatch import Handler
from hmb.broker.request_counters import RequestCounters
from hmb.protocol.annotate import meaning
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages import api_name
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.schema import Request, Response, Struct
from hmb.records import parse_batch
from hmb.units import now_ms

RECORDING = 5  # seconds; each call of `view` continues the recording for this time
LONGEST_RECORDING = 600  # seconds; a call of `slowest` continues the recording for at most this time
KEPT, SLOWEST, FOLLOWED = 100, 20, 20  # numbers of requests; SLOWEST and FOLLOWED apply to each API
MAX_RECORDED_PER_SECOND = 5
PAUSE = 2.0  # seconds; for each API, the recorder stores the function calls of at most one request in this time
MAX_FIELDS = 200  # the recorder keeps at most this number of fields of a request or of a response
MAX_CALLS = 300  # the recorder keeps at most this number of function calls of one request
LONGEST_VALUE = 200  # characters; the recorder shortens longer values
ROOT = f"{Path(hmb.__file__).parent}/"

Json = dict[str, Any]
Call = tuple[int, str, str]  # depth, file below hmb/, qualified name of the function


@dataclass(slots=True)
class SeenRequest:
    """A recorded client request, as short texts and numbers. The request itself may be large, and is not kept."""

    number: int
    time: int  # the time (ms since 1970) at which the handler began
    api: str
    version: int
    client_id: str | None
    client: str
    note: str  # for Produce: the batches, codecs and records, as text
    ms: float = 0.0
    errors: list[str] = field(default_factory=list)
    request: list[list[str]] = field(default_factory=list)  # [path, value] of each field
    response: list[list[str]] | None = None  # None if the client wants no response
    way: list[Call] | None = None  # the function calls that handled the request, in order; None if they are not stored

    def row(self) -> Json:
        """Return the fields that the page's list of requests shows for this request."""
        names = ("number", "time", "api", "version", "client_id", "client", "note", "ms", "errors")
        return {name: getattr(self, name) for name in names} | {"has_way": self.way is not None}


class RecentRequests:
    """Stores the newest and the slowest client requests while a page or `hmb top` shows them. Thread-safe."""

    def __init__(self, counters: RequestCounters) -> None:
        self._counters = counters
        self._lock = threading.Lock()  # guards all fields below; a thread that holds this lock takes no other lock
        self._numbers = itertools.count(1)
        self._recent: deque[SeenRequest] = deque(maxlen=KEPT)
        self._slowest: dict[str, list[SeenRequest]] = {}  # for each API, its slowest requests, the slowest first
        self._ends = 0.0  # when the recording ends (`time.monotonic`)
        self._second, self._taken = 0, 0  # the current second, and the number of requests recorded in it
        # API key -> the earliest time at which the recorder stores the function calls of a request again
        self._next_followed: dict[int, float] = {}
        # API -> its newest requests for which the recorder has stored the function calls (at most FOLLOWED requests)
        self._followed: dict[str, deque[SeenRequest]] = {}

    def view(self) -> Json:
        """Return the requests that were recorded until now, and continue the recording for RECORDING seconds."""
        with self._lock:
            self._record(RECORDING)
            slowest = sorted(chain.from_iterable(self._slowest.values()), key=lambda each: -each.ms)
            return {
                "recent": [each.row() for each in reversed(self._recent)],
                "slowest": [each.row() for each in slowest[:SLOWEST]],
                "followed": [kept.row() for api in sorted(self._followed) for kept in reversed(self._followed[api])],
            }

    def slowest(self, seconds: int) -> dict[str, list[Json]]:
        """Return the slowest recorded requests of each API, and continue the recording.

        The recording continues for at least the next `seconds` seconds. A number above LONGEST_RECORDING counts as
        LONGEST_RECORDING. If no recording is running, the method starts a new one and returns {}.
        """
        with self._lock:
            self._record(min(seconds, LONGEST_RECORDING))
            return {api: [each.row() for each in self._slowest[api]] for api in sorted(self._slowest)}

    def _record(self, seconds: int) -> None:
        """Record requests for at least `seconds` from now on. The caller holds the lock."""
        if self._counters.observe is None:
            self._recent.clear()
            self._slowest.clear()
            self._followed.clear()
            self._ends = 0.0
        self._ends = max(self._ends, time.monotonic() + seconds)
        self._counters.observe = self._observe

    def one(self, number: int) -> Json | None:
        """Return everything about the request with this number, or None if the recorder has forgotten it."""
        with self._lock:
            for each in chain(self._recent, *self._slowest.values(), *self._followed.values()):
                if each.number == number:
                    texts = {"request": each.request, "response": each.response, "way": each.way}
                    return each.row() | texts | {"steps": MAX_CALLS}
        return None

    def stop(self) -> None:
        self._counters.observe = None

    def _observe(self, handler: Handler, request: Any, context: RequestContext) -> Any:
        """Call the handler, and record the request. The broker calls this method instead of the handler."""
        begun = time.perf_counter()
        way: list[Call] | None = [] if self._is_followed(request.api_key) else None
        with _followed(way):
            response = handler(request, context)
        if isinstance(response, Deferred):
            return Deferred(partial(self._result, request, response, context, begun, way))
        self._note(request, response, context, begun, way)
        return response

    def _result(
        self,
        request: Request,
        deferred: Deferred[Response],
        context: RequestContext,
        begun: float,
        way: list[Call] | None,
    ) -> Response:
        with _followed(way):
            response = deferred.result()
        self._note(request, response, context, begun, way)
        return response

    def _is_followed(self, api: int) -> bool:
        now = time.monotonic()
        with self._lock:
            is_due = self._next_followed.get(api, 0.0) <= now
            if is_due:
                self._next_followed[api] = now + PAUSE
        return is_due

    def _note(
        self,
        request: Request,
        response: Response | None,
        context: RequestContext,
        begun: float,
        way: list[Call] | None,
    ) -> None:
        ms = (time.perf_counter() - begun) * 1000
        api = api_name(request.api_key)
        if not self._is_taken(api, ms, is_followed=way is not None):
            return
        answered = None if response is None else list(itertools.islice(_fields(response), MAX_FIELDS))
        seen = SeenRequest(
            number=next(self._numbers),
            time=now_ms() - int(ms),
            api=api,
            version=context.version,
            client_id=_cut(context.header.client_id),
            client=context.client.host,
            note=_note_of(request),
            ms=round(ms, 3),
            errors=sorted({text for _, text, is_error in answered or () if is_error}),
            request=[[path, text] for path, text, _ in itertools.islice(_fields(request), MAX_FIELDS)],
            response=None if answered is None else [[path, text] for path, text, _ in answered],
            way=way,
        )
        with self._lock:
            self._recent.append(seen)
            if way is not None:
                self._followed.setdefault(api, deque(maxlen=FOLLOWED)).append(seen)
            self._slowest[api] = sorted([*self._slowest.get(api, []), seen], key=lambda each: -each.ms)[:SLOWEST]

    def _is_taken(self, api: str, ms: float, *, is_followed: bool) -> bool:
        """Return whether to record a request that took `ms` milliseconds.

        If the end time `_ends` has passed, stop recording requests, and return False.
        """
        now = time.monotonic()
        with self._lock:
            if now > self._ends:
                self._counters.observe = None
                return False
            if int(now) != self._second:
                self._second, self._taken = int(now), 0
            self._taken += 1
            slowest = self._slowest.get(api, [])
            is_slow = len(slowest) < SLOWEST or ms > slowest[-1].ms
            return is_followed or is_slow or self._taken <= MAX_RECORDED_PER_SECOND


@contextmanager
def _followed(way: list[Call] | None) -> Iterator[None]:
    """Record which HMB functions run in this thread during a `with` block.

    Append each call of an HMB function to the list `way`. If `way` is None, record nothing.
    """
    if way is None:
        yield
        return
    if not way:
        way.extend(_callers())
    before = sys.getprofile()
    sys.setprofile(_follower(way))
    try:
        yield
    finally:
        sys.setprofile(before)


def _callers() -> list[Call]:
    """Return the HMB functions that call the handler of a request, directly or through other functions.

    The outermost function comes first, and the direct caller comes last. The list leaves out the functions
    that count or record requests.
    """
    here, frames, frame = __file__, [], sys._getframe()
    while (frame := frame.f_back) is not None:  # type: ignore[assignment]
        name = frame.f_code.co_filename
        if name.startswith(ROOT) and name != here and not name.endswith("broker/counting.py"):
            frames.append((name.removeprefix(ROOT), frame.f_code.co_qualname))
    return [(depth, *names) for depth, names in enumerate(reversed(frames))]


def _follower(way: list[Call]) -> Callable[[FrameType, str, Any], None]:
    """Return a function for `sys.setprofile` that appends calls of HMB functions to the list `way`.

    Python runs the returned function when a function in this thread is called or returns. The returned function
    ignores functions outside HMB.
    """
    depth = 1 + max((each[0] for each in way), default=0)

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal depth
        name = frame.f_code.co_filename
        if not name.startswith(ROOT) or name == __file__:
            return
        if event == "call":
            if len(way) < MAX_CALLS:
                way.append((depth, name.removeprefix(ROOT), frame.f_code.co_qualname))
            depth += 1
        elif event == "return":
            depth -= 1

    return note


def _fields(struct: Struct, path: str = "") -> Iterator[tuple[str, str, bool]]:
    """Yield the path and the value of each field of a message, and whether the value is an error code."""
    for name in struct.fields:
        value = getattr(struct, name)
        for suffix, item in _items(value):
            if isinstance(item, Struct):
                yield from _fields(item, f"{path}{name}{suffix}.")
            else:
                is_error = name == "error_code" and isinstance(item, int) and item != 0
                text = ErrorCode(item).name if isinstance(item, int) and is_error else _cut(_text(name, item))
                yield f"{path}{name}{suffix}", text or "", is_error


def _text(name: str, value: object) -> str:
    return str(value) if isinstance(value, UUID) else meaning(name, value)


def _items(value: object) -> Iterator[tuple[str, object]]:
    """Yield each struct of a list with its index, such as "[0]". For any other value, yield "" and the value."""
    if isinstance(value, list) and value and isinstance(value[0], Struct):
        yield from ((f"[{number}]", item) for number, item in enumerate(value))
    else:
        yield "", value


def _note_of(request: Request) -> str:
    """Return a text about the records in a Produce request, such as `2 batches (gzip, none), 30 records`."""
    if not isinstance(request, ProduceRequest):
        return ""
    codecs, records = [], 0
    for topic in request.topic_data:
        for partition in topic.partition_data:
            with suppress(KafkaError):
                if partition.records:
                    batch = parse_batch(partition.records)
                    codecs.append(batch.codec.name.lower())
                    records += getattr(batch, "records_count", 1)
    batches = "1 batch" if len(codecs) == 1 else f"{len(codecs)} batches"
    noun = "record" if records == 1 else "records"
    return f"{batches} ({', '.join(sorted(set(codecs)))}), {records} {noun}" if codecs else "no records"


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."
