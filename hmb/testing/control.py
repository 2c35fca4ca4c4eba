"""The control port: a test adds faults to a broker in another process, with HTTP and JSON.

A test in Go, Java or JavaScript starts `hmb broker --faults FILE` or `hmb broker --embedded`. The test cannot call
Python methods such as `broker.faults.add`. Instead, it sends HTTP requests to a second port of the broker, the control
port:

    GET    /faults        return the existing faults, as a list of objects
    POST   /faults        add one fault (an object) or several (a list); return a list of the new faults
    DELETE /faults        remove all faults
    GET    /requests      return the recorded requests of clients, as a list of objects, oldest first
    DELETE /requests      remove all recorded requests
    POST   /corrupt       damage a batch on the disk
    GET    /clock         return the time of the broker's clock, `{"now_ms": ...}`
    POST   /clock         move the clock forward, and return the new time

An object for `/faults` looks the same as in a file of faults (fault_objects.py). Two examples are
`{"api": "PRODUCE", "error": "NOT_LEADER_OR_FOLLOWER", "times": 2}` and `{"disk": "full"}`. In a response, a fault of
requests also has the key `count`: the number of requests that the fault has changed. If a request to the control port
is wrong, the response is one line: `{"error": "..."}`.

The broker begins to record the requests of clients when a test first uses `/requests`. So a test sends
`DELETE /requests` before its client starts, and `GET /requests` afterwards.

The keys of the object for `/clock` are the arguments of `ManualClock.advance`, for example
`{"hours": 1, "expire_members": true}`. The server responds when all work is done that was due in this time. The keys of
the object for `/corrupt` are the arguments of `DiskFaults.corrupt`, for example `{"topic": "orders", "offset": 5}`.

*Security.* A web page in a browser on the same computer could send requests to this port. Three checks refuse these
requests. First, the header `Authorization: Bearer TOKEN` must contain the token that the broker prints at its start.
Second, the header Host must be 127.0.0.1 or localhost. Otherwise the owner of another name could point this name to
127.0.0.1 (DNS rebinding). Third, if a request has the header Origin, this header must name the control port itself.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from hmb.broker.broker import BrokerServer
from hmb.broker.config.keys import nearest
from hmb.protocol.errors import KafkaError
from hmb.testing.clock import ManualClock
from hmb.testing.fault_objects import AllFaults, add_all, corrupt, described
from hmb.testing.request_record import RequestRecord

FAULTS, REQUESTS, CLOCK, CORRUPT = "/faults", "/requests", "/clock", "/corrupt"
TIME_KEYS = dict.fromkeys(("days", "hours", "minutes", "seconds", "milliseconds"), float) | {"expire_members": bool}
MOST_BYTES = 1 << 20  # the largest size of a request's body, in bytes
IDLE = 30  # The server closes a connection that sends nothing for this time (seconds).


class Refused(Exception):
    """An error for a request that the control port refuses. `status` is the HTTP status of the response."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


# -- the clock as data


def advance(clock: ManualClock, given: Any) -> None:
    """Advance a clock by the time in a JSON object, for example {"hours": 1}. Raises ValueError for a wrong object."""
    if not isinstance(given, dict):
        raise ValueError('the time must be a mapping, for example {"hours": 1}')
    for name, value in given.items():
        if name not in TIME_KEYS:
            raise ValueError(f"unknown key {name!r}{nearest(name, TIME_KEYS)}")
        wanted = TIME_KEYS[name]
        if isinstance(value, bool) is not (wanted is bool) or not isinstance(value, int | float):
            raise ValueError(f"{name}={value!r}: must be a value of the type {wanted.__name__}")
    clock.advance(**given)


# -- the server


class ControlPort:
    """An HTTP server on 127.0.0.1 that controls the faults, the record of requests and the clock of a broker."""

    def __init__(self, faults: AllFaults, requests: RequestRecord, clock: ManualClock) -> None:
        """Create the server on a free port. `start` begins to serve requests. Raises OSError."""
        self.clock = clock
        self.token = secrets.token_urlsafe(24)
        self._faults = faults
        self._server = _Server(faults, requests, clock, self.token)
        self._thread = threading.Thread(target=self._server.serve_forever, name="control-port", daemon=True)

    @property
    def address(self) -> str:
        """The address of the server: `127.0.0.1:port`."""
        return f"127.0.0.1:{self._server.server_port}"

    def attach(self, server: BrokerServer) -> None:
        """Apply the clock and the disk faults of this control port to a started broker."""
        self.clock.attach(server)
        self._faults.disk.attach(server)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, faults: AllFaults, requests: RequestRecord, clock: ManualClock, token: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.faults = faults
        self.requests = requests
        self.clock = clock
        self.token = token


class _Handler(BaseHTTPRequestHandler):
    """The handler of one HTTP request. `http.server` calls `do_GET`, `do_POST` or `do_DELETE`."""

    server: _Server
    timeout = IDLE

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def _answer(self) -> None:
        try:
            self._check()
            self._send(HTTPStatus.OK, self._result())
        except Refused as error:
            self._send(error.status, {"error": str(error)})
        except (KafkaError, ValueError) as error:  # FaultError and errors of JSON or Unicode are ValueErrors.
            self._send(HTTPStatus.BAD_REQUEST, {"error": str(error)})

    def _check(self) -> None:
        """Raise Refused if a request lacks the token, comes from a web page, or has an unknown path."""
        port = self.server.server_port
        ours = [f"127.0.0.1:{port}", f"localhost:{port}"]
        if self.headers.get("Host") not in ours:
            raise Refused(HTTPStatus.FORBIDDEN, "the header Host names another server")
        if self.headers.get("Origin") not in (None, *(f"http://{each}" for each in ours)):
            raise Refused(HTTPStatus.FORBIDDEN, "the header Origin names another web site")
        given = self.headers.get("Authorization", "").encode()
        if not hmac.compare_digest(given, f"Bearer {self.server.token}".encode()):
            raise Refused(HTTPStatus.UNAUTHORIZED, "the token is missing or wrong; the broker prints it at its start")
        if self.path not in (FAULTS, REQUESTS, CLOCK, CORRUPT):
            raise Refused(HTTPStatus.NOT_FOUND, f"no such path; use {FAULTS}, {REQUESTS}, {CLOCK} or {CORRUPT}")

    def _result(self) -> object:
        methods = {FAULTS: self._faults, REQUESTS: self._requests, CLOCK: self._clock, CORRUPT: self._corrupt}
        return methods[self.path]()

    def _clock(self) -> dict[str, int]:
        clock = self.server.clock
        if self.command == "DELETE":
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"{CLOCK} knows GET and POST: a clock only moves forward")
        if self.command == "POST":
            advance(clock, json.loads(self._body()))
        return {"now_ms": clock.now_ms()}

    def _requests(self) -> list[dict[str, Any]]:
        if self.command == "POST":
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"{REQUESTS} knows GET and DELETE")
        requests = self.server.requests
        requests.start()
        if self.command == "DELETE":
            requests.clear()
        return [each.as_json() for each in requests]

    def _faults(self) -> list[dict[str, Any]]:
        faults = self.server.faults
        if self.command == "DELETE":
            faults.clear()
        if self.command != "POST":
            return [described(each) for each in faults.added]
        body = json.loads(self._body())
        return [described(each) for each in add_all(faults, body if isinstance(body, list) else [body])]

    def _corrupt(self) -> dict[str, Any]:
        if self.command != "POST":
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"{CORRUPT} knows POST")
        given = json.loads(self._body())
        corrupt(self.server.faults.disk, given)
        return {}

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            raise Refused(HTTPStatus.BAD_REQUEST, f"Content-Length must be a number up to {MOST_BYTES}")
        return self.rfile.read(int(length))

    def _send(self, status: HTTPStatus, result: object) -> None:
        body = json.dumps(result).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Write no line for a request, because a test may read the broker's standard error."""
