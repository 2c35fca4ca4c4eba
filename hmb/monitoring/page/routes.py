"""Serves what every page needs: its files, the feed of changes, and the states that a group can have.

`own_broker.py` adds the routes of a page that a broker serves about itself. `hmb.monitoring.remote` adds the routes of
a page that `hmb ui -b` serves about another broker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial
from html import escape
from http import HTTPStatus
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs

from hmb.coordinator.classic.states import TRANSITIONS
from hmb.coordinator.modern.states import GROUP_STATES
from hmb.monitoring.http_server import HttpRequest, HttpResponse, HttpServer, json_response
from hmb.monitoring.logins import Reader
from hmb.monitoring.page.feed import MAX_LISTENERS, OWN_PACE, Feed, Pace
from hmb.monitoring.refusal import Refused
from hmb.monitoring.rights import visible
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
LOGIN_HEADERS = HEADERS | {
    "Content-Security-Policy": POLICY.replace("form-action 'none'", "form-action 'self'"),
    "Referrer-Policy": "same-origin",  # With "no-referrer", a browser would send the form without its origin.
}
FIRST_VISIT = """<!doctype html><html lang="en"><title>HMB: the link is incomplete</title>
<h1>This page needs the whole link</h1>
<p>Open the link that the broker printed at its start. It ends in <code>?token=...</code>.
The command <code>hmb ui</code> prints the link again.</p></html>
"""


class PageRoutes:
    """The HTTP routes that every page needs: for its files, for the feed of changes, and for the states of groups.

    A subclass adds routes for the details that a user can open on the page, for example a batch.
    """

    def __init__(self, server: HttpServer, current: Callable[[], BrokerState], pace: Pace = OWN_PACE) -> None:
        """Add the routes to `server`. `current` returns the state of the broker."""
        self._server = server
        self._current, self._pace = current, pace
        self._feeds: dict[Reader, Feed] = {}
        self._lock = threading.Lock()  # guards `_feeds`
        server.add(PAGE, self._page, is_public=True)
        server.add("/login", self._log_in, "POST", is_public=True)
        server.add("/logout", self._log_out, "POST", is_public=True)
        for file in files(__package__).joinpath("static").iterdir():
            suffix = file.name[file.name.rindex(".") :]
            if suffix in TYPES and file.name != "index.html":
                server.add(f"/{file.name}", partial(_static, file.read_bytes(), TYPES[suffix]), is_public=True)
        server.add("/changes", self._changes)
        server.add("/group-states", lambda _: json_response(group_states()))

    def stop(self) -> None:
        with self._lock:
            for feed in self._feeds.values():
                feed.stop()

    def _page(self, request: HttpRequest) -> HttpResponse:
        """Return the page. If the address contains the token, redirect the browser, and set a cookie with the token."""
        admission = self._server.admission
        if not admission.is_token(request.proofs.token):
            return _first_visit()
        if request.query.get("token") is not None:
            return _redirect(self._server.token_cookie)
        if admission.requires_login and admission.session_reader(request.proofs) is None:
            return _login_form()
        return _static(files(__package__).joinpath("static", "index.html").read_bytes(), TYPES[".html"], request)

    def _log_in(self, request: HttpRequest) -> HttpResponse:
        """Begin the session of a user, or return the form again with the reason for the refusal."""
        logins = self._server.admission.logins
        if not self._server.admission.is_token(request.proofs.token) or logins is None:
            return _first_visit()
        form = parse_qs(request.body.decode(errors="replace"))
        user, password = (form.get(name, [""])[0] for name in ("user", "password"))
        try:
            session = logins.log_in(user, password, request.proofs.host)
        except Refused as error:
            return _login_form(str(error), error.status)
        return _redirect(self._server.session_cookie(session))

    def _log_out(self, request: HttpRequest) -> HttpResponse:
        if (logins := self._server.admission.logins) is not None:
            logins.log_out(request.proofs.session)
        return _redirect(self._server.session_cookie(""))

    def _changes(self, request: HttpRequest) -> HttpResponse:
        with self._lock:
            if sum(feed.listeners for feed in self._feeds.values()) >= MAX_LISTENERS:
                raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too many pages are open; close one of them")
            self._feeds = {reader: feed for reader, feed in self._feeds.items() if feed.listeners}
            if request.reader not in self._feeds:
                self._feeds[request.reader] = Feed(partial(self._visible, request.reader), self._pace)
            events = self._feeds[request.reader].listen()
        return HttpResponse(
            b"retry: 1000\n\n", "text/event-stream", headers=HEADERS, chunks=self._while_admitted(events, request)
        )

    def _visible(self, reader: Reader) -> BrokerState:
        return visible(self._current(), reader)

    def _while_admitted(
        self, events: Generator[bytes, None, None], request: HttpRequest
    ) -> Generator[bytes, None, None]:
        """Yield the events of a stream until the client may no longer read the broker's state."""
        with closing(events):
            for event in events:
                if not self._server.admission.still_admits(request.proofs, request.reader):
                    return
                yield event


def group_states() -> dict[str, Any]:
    """Return the classic group protocol's states and transitions, and the consumer protocol's states.

    The data comes from the group coordinators' own tables.
    """
    transitions = [[it.before.value, it.event.value, it.after.value] for it in TRANSITIONS]
    names = dict.fromkeys(name for before, _, after in transitions for name in (before, after))
    return {
        "classic": {"states": list(names), "transitions": transitions},
        "consumer": {"states": [row.state.value for row in reversed(GROUP_STATES)], "transitions": []},
    }


def _static(data: bytes, content_type: str, _: HttpRequest) -> HttpResponse:
    return HttpResponse(data, f"{content_type}; charset=utf-8", headers=HEADERS)


def _redirect(cookie: str) -> HttpResponse:
    return HttpResponse(
        b"", "text/plain", HTTPStatus.SEE_OTHER, HEADERS | {"Location": PAGE, "Set-Cookie": cookie}
    )


def _login_form(problem: str = "", status: HTTPStatus = HTTPStatus.OK) -> HttpResponse:
    text = files(__package__).joinpath("static", "login.html").read_text(encoding="utf-8")
    sentence = f"{problem[:1].upper()}{problem[1:]}."
    shown = f'<p class="problem" role="alert">{escape(sentence)}</p>' if problem else ""
    page = text.replace("    PROBLEM", f"    {shown}")
    return HttpResponse(page.encode(), "text/html; charset=utf-8", status, LOGIN_HEADERS)


def _first_visit() -> HttpResponse:
    return HttpResponse(FIRST_VISIT.encode(), "text/html; charset=utf-8", HTTPStatus.UNAUTHORIZED, HEADERS)


def number_of(request: HttpRequest, name: str, default: int | None = None) -> int:
    """Return the value of the query parameter `name` as a number. Raises Refused if it is missing or malformed."""
    text = request.query.get(name, "" if default is None else str(default))
    if not text.isascii() or not text.isdecimal() or len(text) > 19:
        raise Refused(HTTPStatus.BAD_REQUEST, f"{name} must be a whole number of at least 0, not {text[:50]!r}")
    return int(text)
