"""The routes of the page: its files, the feed of changes, and the parts that the page reads when the user opens them.

The address of a part names a partition, for example `/batch?topic=orders&partition=0&segment=8021&position=5000`. A
request that names a missing topic, segment or offset gets the status 404 and a JSON object with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from hmb.broker.broker import BrokerServer
from hmb.coordinator.classic.states import TRANSITIONS
from hmb.coordinator.modern.states import GROUP_STATES
from hmb.monitoring.http_server import HttpRequest, HttpResponse, HttpServer, Refused, json_response
from hmb.monitoring.page.feed import Feed
from hmb.monitoring.page.log_views import batch_view, look_up_offset, look_up_time, segment_view
from hmb.monitoring.page.recent_requests import KEPT, SLOWEST, RecentRequests
from hmb.monitoring.state import BrokerState
from hmb.protocol.errors import KafkaError
from hmb.storage.log import Log

PAGE = "/"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
POLICY = "; ".join(
    [
        "default-src 'none'",
        *(f"{kind}-src 'self'" for kind in ("script", "style", "connect", "img")),
        *(f"{kind} 'none'" for kind in ("base-uri", "form-action", "frame-ancestors")),
    ]
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
FIRST_VISIT = """<!doctype html><html lang="en"><title>HMB: the link is incomplete</title>
<h1>This page needs the whole link</h1>
<p>Open the link that the broker printed at its start. It ends in <code>?token=...</code>.
The command <code>hmb ui</code> prints the link again.</p></html>
"""


class PageRoutes:
    """The routes of one broker's page, with the feed and the recorder that they use."""

    def __init__(self, server: HttpServer, broker: BrokerServer, current: Callable[[], BrokerState]) -> None:
        """Add the routes to `server`. `current` returns the state of the broker."""
        self._server = server
        self._broker = broker
        self._feed = Feed(current)
        self._requests = RecentRequests(broker.context.requests)
        server.add(PAGE, self._page, is_public=True)
        for file in files(__package__).joinpath("static").iterdir():
            suffix = file.name[file.name.rindex(".") :]
            if suffix in TYPES and file.name != "index.html":
                server.add(f"/{file.name}", partial(_static, file.read_bytes(), TYPES[suffix]), is_public=True)
        server.add("/changes", self._changes)
        server.add("/segment", self._segment)
        server.add("/batch", self._batch)
        server.add("/look-up", self._look_up)
        server.add("/requests", lambda _: json_response(self._requests.view()))
        server.add("/request", self._request)
        server.add("/group-states", lambda _: json_response(group_states()))

    def stop(self) -> None:
        self._feed.stop()
        self._requests.stop()

    def _page(self, request: HttpRequest) -> HttpResponse:
        """Return the page. Exchange the token in an address for a cookie, and redirect the browser."""
        if request.query.get("token") is not None:
            headers = HEADERS | {"Location": PAGE, "Set-Cookie": self._server.cookie}
            if not self._server.is_token(request.query["token"]):
                return _first_visit()
            return HttpResponse(b"", "text/plain", HTTPStatus.SEE_OTHER, headers)
        if not self._server.is_token(request.cookie):
            return _first_visit()
        return _static(files(__package__).joinpath("static", "index.html").read_bytes(), TYPES[".html"], request)

    def _changes(self, request: HttpRequest) -> HttpResponse:
        if self._feed.is_full:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too many pages are open; close one of them")
        return HttpResponse(b"retry: 1000\n\n", "text/event-stream", headers=HEADERS, chunks=self._feed.listen())

    def _segment(self, request: HttpRequest) -> HttpResponse:
        base_offset, position = _number(request, "segment"), _number(request, "position", 0)
        return self._of_log(request, lambda log: segment_view(log, base_offset, position))

    def _batch(self, request: HttpRequest) -> HttpResponse:
        base_offset, position = _number(request, "segment"), _number(request, "position")
        return self._of_log(request, lambda log: batch_view(log, base_offset, position))

    def _look_up(self, request: HttpRequest) -> HttpResponse:
        if "timestamp" in request.query:
            timestamp = _number(request, "timestamp")
            return self._of_log(request, lambda log: look_up_time(log, timestamp))
        offset = _number(request, "offset")
        return self._of_log(request, lambda log: look_up_offset(log, offset))

    def _of_log(self, request: HttpRequest, view: Callable[[Log], Any]) -> HttpResponse:
        name, number = request.query.get("topic", ""), _number(request, "partition")
        topic = self._broker.context.topics.get(name)
        log = None if topic is None else topic.partitions.get(number)
        if log is None:
            raise Refused(HTTPStatus.NOT_FOUND, f"the broker has no partition {number} of topic {name}")
        try:
            return json_response(view(log))
        except KafkaError as error:
            raise Refused(HTTPStatus.NOT_FOUND, error.message) from error
        except OSError as error:
            why = f"{error.strerror or error}; retention or compaction may have removed the file"
            raise Refused(HTTPStatus.NOT_FOUND, why) from error

    def _request(self, request: HttpRequest) -> HttpResponse:
        found = self._requests.one(_number(request, "number"))
        if found is None:
            kept = f"it keeps the last {KEPT} requests and the {SLOWEST} slowest ones"
            why = f"the broker has forgotten this request; {kept}"
            raise Refused(HTTPStatus.NOT_FOUND, why)
        return json_response(found)


def group_states() -> dict[str, Any]:
    """Return the state machines of both group protocols, from the tables that drive the groups."""
    transitions = [[it.before.value, it.event.value, it.after.value] for it in TRANSITIONS]
    names = dict.fromkeys(name for before, _, after in transitions for name in (before, after))
    return {
        "classic": {"states": list(names), "transitions": transitions},
        "consumer": {"states": [row.state.value for row in reversed(GROUP_STATES)], "transitions": []},
    }


def _static(data: bytes, content_type: str, _: HttpRequest) -> HttpResponse:
    return HttpResponse(data, f"{content_type}; charset=utf-8", headers=HEADERS)


def _first_visit() -> HttpResponse:
    return HttpResponse(FIRST_VISIT.encode(), "text/html; charset=utf-8", HTTPStatus.UNAUTHORIZED, HEADERS)


def _number(request: HttpRequest, name: str, default: int | None = None) -> int:
    """Return a number from the address. Raises Refused if the number is missing or malformed."""
    text = request.query.get(name, "" if default is None else str(default))
    if not text.isascii() or not text.isdecimal() or len(text) > 19:
        raise Refused(HTTPStatus.BAD_REQUEST, f"{name}={text[:50]!r} is not a number from 0 on")
    return int(text)
