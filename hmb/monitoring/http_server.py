"""A small HTTP server inside the broker: for the state, the metrics, the health check and the control port of tests.

A *route* is a path, such as `/state`, with the function that answers requests for this path. A public route needs no
secret. A request for a protected route must contain a secret. This is usually the *token*, a random text that the
broker prints when it starts. If the broker has users, a user must usually log in, too (admission.py lists the
exceptions).

A client sends the token in the header `Authorization: Bearer TOKEN`, or in the address as `?token=TOKEN`. The link that
the broker prints contains the token, so a user can click it in the terminal.

*Security.* An attacker's web page can make the user's browser send requests to the server. The server refuses
these requests with three checks:
1. A request to a protected path must contain a secret, usually a random token. The attacker's page does not
   know this secret.
2. The header Host must contain the address of the server. If only programs on this computer can reach the
   server, the name localhost is also allowed. Without this check, an attacker could let the domain evil.example
   point to 127.0.0.1. A page of this domain could then read the responses (DNS rebinding).
3. In the header Origin, a browser names the web site that sends the request. If this header exists, it must
   name the server.

If the server listens on all addresses of its computer, it does not check the header Host. Its protected routes
then need TLS and a login (see `ports`).

The user opens the page of this server with a link that contains the token. The page then loads further files, and their
addresses must not show the token. So the browser can also send the token in a cookie. After a login, a second cookie
contains the user's session.

The server accepts its token and session cookies only in GET requests and in requests to public routes, such as
`/login` and `/logout`. Otherwise, an attacker's web page could make the browser send a POST request with the
cookies, and change something in the broker.

A browser sends the cookies of a host to all ports of this host. Two servers on the same host must not use each
other's cookies, so the name of a cookie contains the server's port. The cookies have the attribute
SameSite=Strict. With this attribute, the browser does not send them in a request that starts from another web
site.

*Limits.* A client could open many connections, or send its request byte by byte. The server therefore has at most
MAX_OPEN open connections, and closes further ones at once. A request must arrive within REQUEST_TIMEOUT seconds. These
limits leave most file descriptors of the process free for the logs and for the clients of the broker.

*TLS.* If other computers can reach the protected routes of the server, the server encrypts its connections.
Each connection has its own thread. This thread, and not the thread that accepts connections, does the TLS
handshake. A client with a slow handshake therefore does not delay other clients.

*Streams.* A response with `chunks` is a stream without a fixed end: the server sends each chunk as soon as the
iterator yields it.

If a client reads slowly, sending a chunk can take more than SLOW seconds. The server then closes the
connection. With TLS, the server sends a large chunk in several encrypted parts, and this limit applies to each
part. A stream without new chunks stays open.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, suppress
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from socket import AF_INET6, SHUT_RDWR, socket
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from hmb.broker.security.tls import TlsListener, TlsSocket, shake_hands
from hmb.defaults import DEFAULT_HOST
from hmb.monitoring.admission import Admission, Proofs
from hmb.monitoring.logins import OWNER, Reader
from hmb.monitoring.refusal import Refused
from hmb.security.ip_addresses import normal_address

LOGGER = logging.getLogger(__name__)
MAX_BYTES = 1 << 20  # the largest size of a request's body, in bytes
# The server closes a connection if it cannot send the body of a response within this time (seconds). With TLS, the
# limit applies to each encrypted part of the body.
IDLE = 30
MAX_OPEN = 40  # open connections; 16 of them can be pages that listen to changes (page/feed.py)
REQUEST_TIMEOUT = 10  # seconds in which a client must complete the TLS handshake and send its whole request
SLOW = 5  # seconds; the server closes a stream if it cannot send a chunk of the stream within this time
JSON, TEXT = "application/json", "text/plain; charset=utf-8"


class HttpRequest(NamedTuple):
    """One HTTP request.

    `query` contains the parameters after the `?`. If a name occurs twice, only its last value is kept.
    """

    method: str
    query: dict[str, str]
    body: bytes
    proofs: Proofs
    reader: Reader = OWNER  # the user who sent the request; if the route is public, OWNER (a user without a name)


class HttpResponse(NamedTuple):
    """One HTTP response. If the response is a stream, the server first sends `body`, and then each of the `chunks`."""

    body: bytes
    content_type: str = JSON
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = {}  # headers of the response, without Content-Type, which is in `content_type`
    chunks: Generator[bytes, None, None] | None = None  # parts of a stream, which the server sends after `body`


Respond = Callable[[HttpRequest], HttpResponse]


class Route(NamedTuple):
    """The function that answers the requests for one path, and the HTTP methods that this function accepts."""

    respond: Respond
    methods: tuple[str, ...] = ("GET",)
    is_public: bool = False  # whether requests need no token


def json_response(value: object, status: HTTPStatus = HTTPStatus.OK) -> HttpResponse:
    return HttpResponse(json.dumps(value).encode() + b"\n", JSON, status)


class HttpServer:
    """An HTTP server with a thread that accepts connections, and one thread for each open connection."""

    def __init__(self, host: str = DEFAULT_HOST, port: int = 0, tls: TlsListener | None = None) -> None:
        """Bind the address; port 0 selects a free port. `start` begins to serve requests. Raises OSError."""
        self.admission = Admission(is_public=not is_loopback(host))
        self._routes: dict[str, Route] = {}
        self._server = _Server(host, port, self._routes, self.admission, tls)
        self._thread = threading.Thread(target=self._server.serve_forever, name=f"http-{self.port}", daemon=True)

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def address(self) -> str:
        """The address of the server: `host:port`."""
        return self._server.address

    @property
    def url(self) -> str:
        """The address with its scheme: `http://host:port`, or `https://host:port` with TLS."""
        return f"{self._server.scheme}://{self.address}"

    @property
    def token(self) -> str:
        return self.admission.token

    @property
    def token_cookie(self) -> str:
        """The value of the header Set-Cookie, with which a browser stores the token."""
        return f"{self._server.token_name}={self.token}; {self._server.cookie_attributes}"

    def session_cookie(self, session: str) -> str:
        """Return the value of the header Set-Cookie, with which a browser stores the id of a session."""
        return f"{self._server.session_name}={session}; {self._server.cookie_attributes}"

    def add(self, path: str, respond: Respond, *methods: str, is_public: bool = False) -> None:
        """Add a route for requests with one of the methods (GET by default). The caller adds routes before `start`."""
        self._routes[path] = Route(respond, methods or ("GET",), is_public)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Close the server's port. The server still answers the requests that it has begun to handle."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()  # The wait is short: the thread has left `serve_forever` when `shutdown` returns.
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(
        self, host: str, port: int, routes: dict[str, Route], admission: Admission, tls: TlsListener | None
    ) -> None:
        if ":" in host:
            self.address_family = AF_INET6
        super().__init__((host, port), _Handler)
        self.routes = routes
        self.admission = admission
        self.host = host
        self._tls = tls
        self._lock = threading.Lock()  # guards `_open`; a thread that holds it takes no other lock
        self._open: dict[socket, float] = {}  # each open connection -> the deadline for the arrival of its request

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a new connection in its own thread. If MAX_OPEN connections are open, close the new one."""
        with self._lock:
            has_room = len(self._open) < MAX_OPEN
            if has_room:
                self._open[request] = time.monotonic() + REQUEST_TIMEOUT
        if has_room:
            super().process_request(request, client_address)
        else:
            LOGGER.warning("refused %s: the HTTP server has %d open connections", client_address[0], MAX_OPEN)
            self.shutdown_request(request)

    def request_arrived(self, request: socket) -> None:
        """Record that the whole request has arrived, so that `service_actions` does not end the connection."""
        with self._lock:
            self._open[request] = math.inf

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End connections whose request has not arrived in time. `serve_forever` calls this method twice a second."""
        now = time.monotonic()
        with self._lock:
            late = [each for each, deadline in self._open.items() if deadline < now]
        for each in late:
            with suppress(OSError):
                each.shutdown(SHUT_RDWR)

    def get_request(self) -> tuple[socket, Any]:
        """Accept a connection. The thread that serves this connection does the TLS handshake later."""
        client, address = super().get_request()
        return (client if self._tls is None else self._tls.encrypted(client)), address

    @property
    def scheme(self) -> str:
        return "http" if self._tls is None else "https"

    @property
    def address(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.server_port}"

    @property
    def token_name(self) -> str:
        return f"hmb-{self.server_port}"

    @property
    def session_name(self) -> str:
        return f"hmb-session-{self.server_port}"

    @property
    def cookie_attributes(self) -> str:
        return f"Path=/; HttpOnly; SameSite=Strict{'' if self._tls is None else '; Secure'}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Log an exception of a connection. The method of the base class would print a traceback at each disconnect."""
        LOGGER.debug("a request of %s failed", client_address, exc_info=True)

    @property
    def names(self) -> set[str] | None:
        """The allowed values of the header Host.

        None means that all values are allowed, because the server listens on all addresses.
        """
        if is_unspecified(self.host):
            return None
        return {self.address} | ({f"localhost:{self.server_port}"} if is_loopback(self.host) else set())


class _Handler(BaseHTTPRequestHandler):
    """The handler of one HTTP request. `http.server` calls `do_GET`, `do_POST` or `do_DELETE`."""

    server: _Server
    timeout = REQUEST_TIMEOUT

    def setup(self) -> None:
        """If the connection uses TLS, make the handshake. Raises CloseConnection if the handshake fails."""
        if isinstance(self.request, TlsSocket):
            shake_hands(self.request, REQUEST_TIMEOUT)
        super().setup()

    def do_GET(self) -> None:
        self._respond()

    def do_POST(self) -> None:
        self._respond()

    def do_DELETE(self) -> None:
        self._respond()

    def _respond(self) -> None:
        try:
            response = self._response()
        except Refused as error:
            response = json_response({"error": str(error)}, error.status)
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        if response.chunks is None:
            self.send_header("Content-Length", str(len(response.body)))
        for name, value in {"Cache-Control": "no-store", **response.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(response.body)
        if response.chunks is not None:
            self._send_stream(response.chunks)

    def _send_stream(self, chunks: Generator[bytes, None, None]) -> None:
        """Send the chunks of a stream until the stream ends, the client has disconnected, or the client is too slow."""
        self.connection.settimeout(SLOW)
        with closing(chunks), suppress(OSError):  # TimeoutError is an OSError, too.
            for chunk in chunks:
                self.wfile.write(chunk)

    def _response(self) -> HttpResponse:
        address = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(address.query).items()}
        route = self.server.routes.get(address.path)
        self._check_origin()
        proofs = self._proofs(query)
        reader = OWNER if route is not None and route.is_public else self.server.admission.reader(proofs)
        if route is None:
            raise Refused(HTTPStatus.NOT_FOUND, f"no such path; use {', '.join(self.server.routes)}")
        if self.command not in route.methods:
            why = f"the HTTP method is wrong; {address.path} accepts only {' and '.join(route.methods)}"
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, why)
        body = self._body() if self.command == "POST" else b""
        self.server.request_arrived(self.request)
        self.connection.settimeout(IDLE)
        return route.respond(HttpRequest(self.command, query, body, proofs, reader))

    def _check_origin(self) -> None:
        """Raise Refused if the header Host or Origin shows that a web page of another site has sent the request."""
        host, names = self.headers.get("Host", ""), self.server.names
        if names is None:  # The server listens on all addresses of its computer, so it accepts any host name.
            names = {host}
        if host not in names:
            raise Refused(HTTPStatus.FORBIDDEN, "the header Host names another server")
        if self.headers.get("Origin") not in (None, *(f"{self.server.scheme}://{name}" for name in names)):
            raise Refused(HTTPStatus.FORBIDDEN, "the header Origin names another web site")

    def _proofs(self, query: dict[str, str]) -> Proofs:
        """Return the parts of the request that can prove who sent it, for example the token.

        An attacker's web page could make the browser send a POST request with the user's cookies. `_proofs` therefore
        uses cookies only in GET requests and in requests to public routes. The public routes `/login` and `/logout`
        need the cookies.
        """
        cookies: SimpleCookie = SimpleCookie()
        with suppress(CookieError):
            cookies.load(self.headers.get("Cookie", ""))
        token, session = (
            "" if (found := cookies.get(name)) is None else found.value
            for name in (self.server.token_name, self.server.session_name)
        )
        if self.command != "GET":
            route = self.server.routes.get(urlsplit(self.path).path)
            token, session = (token, session) if route is not None and route.is_public else ("", "")
        host = normal_address(str(self.client_address[0]))
        return Proofs(self.headers.get("Authorization", ""), query.get("token") or token, session, host)

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BYTES:
            raise Refused(HTTPStatus.BAD_REQUEST, f"Content-Length must be a number up to {MAX_BYTES}")
        return self.rfile.read(int(length))

    def log_message(self, format: str, *args: object) -> None:
        """Do nothing. The base class would print a line for each request to standard error.

        These lines would disturb a test that reads what the broker writes to standard error.
        """


def is_loopback(host: str) -> bool:
    """Return whether only programs on this computer can reach `host`."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def is_unspecified(host: str) -> bool:
    """Return whether `host` (for example "0.0.0.0") means all addresses of this computer."""
    try:
        return not host or ip_address(host).is_unspecified
    except ValueError:
        return False
