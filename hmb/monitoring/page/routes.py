"""The routes that every page has: its files, the feed of changes, and the state machines of groups.

`own_broker.py` adds the routes of a page that its own broker serves. `hmb.monitoring.remote` adds the routes of a page
that reads another broker through its APIs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from hmb.coordinator.classic.states import TRANSITIONS
from hmb.coordinator.modern.states import GROUP_STATES
from hmb.monitoring.http_server import HttpRequest, HttpResponse, HttpServer, Refused, json_response
from hmb.monitoring.page.feed import OWN_PACE, Feed, Pace
from hmb.monitoring.state import BrokerState

PAGE, STATE = "/", "/state"
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
    """The routes of every page: its files, the feed of changes, and the state machines of groups.

    A subclass adds the routes for the parts that a user opens.
    """

    def __init__(self, server: HttpServer, current: Callable[[], BrokerState], pace: Pace = OWN_PACE) -> None:
        """Add the routes to `server`. `current` returns the state of the broker."""
        self._server = server
        self._feed = Feed(current, pace)
        server.add(PAGE, self._page, is_public=True)
        for file in files(__package__).joinpath("static").iterdir():
            suffix = file.name[file.name.rindex(".") :]
            if suffix in TYPES and file.name != "index.html":
                server.add(f"/{file.name}", partial(_static, file.read_bytes(), TYPES[suffix]), is_public=True)
        server.add("/changes", self._changes)
        server.add("/group-states", lambda _: json_response(group_states()))

    def stop(self) -> None:
        self._feed.stop()

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


def number_of(request: HttpRequest, name: str, default: int | None = None) -> int:
    """Return a number from the address. Raises Refused if the number is missing or malformed."""
    text = request.query.get(name, "" if default is None else str(default))
    if not text.isascii() or not text.isdecimal() or len(text) > 19:
        raise Refused(HTTPStatus.BAD_REQUEST, f"{name}={text[:50]!r} is not a number from 0 on")
    return int(text)
