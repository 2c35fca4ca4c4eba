"""The control port: faults of a broker in another process, by HTTP and JSON.

A test in Go, Java or JavaScript starts `hmb broker --faults FILE` or `hmb broker --embedded`. The test cannot call
`broker.faults`, so it sends HTTP requests to a second port, the control port:

    GET    /faults        the faults, as a list of objects
    POST   /faults        add a fault (an object) or several (a list); the response is a list of the new faults
    DELETE /faults        remove all faults
    GET    /requests      the requests of clients, as a list of objects, oldest first
    DELETE /requests      forget all requests
    GET    /clock         the time of the broker's clock, `{"now_ms": ...}`
    POST   /clock         move the clock forward; the response has the new time

An object has the names of the arguments of `Faults.add`, for example
`{"api": "PRODUCE", "error": "NOT_LEADER_OR_FOLLOWER", "times": 2}`. A file of faults is a list of the same objects, in
YAML or JSON. A response also has `count`, the number of requests that the fault has changed. An error is one line:
`{"error": "..."}`.

The broker records requests from the first use of `/requests` on. So a test sends DELETE before its client begins, and
GET afterwards.

The object for `/clock` has the names of the arguments of `ManualClock.advance`, for example
`{"hours": 1, "expire_members": true}`. The response comes when everything that became due is done.

*Safety.* A web page in a browser on the same computer can send requests to this port. Three checks refuse them. Each
request needs the token that the broker prints at its start, in the header `Authorization: Bearer TOKEN`. The header
Host must name the loopback address, because a foreign name could point to it (DNS rebinding). A header Origin with
another address is refused.
"""

from __future__ import annotations

import hmac
import importlib
import inspect
import json
import secrets
import threading
from collections.abc import Mapping
from dataclasses import fields
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from hmb.broker.config.keys import nearest
from hmb.testing.clock import ManualClock
from hmb.testing.faults import Fault, FaultError, Faults
from hmb.testing.request_record import RequestRecord

KEYS = {name: each for name, each in inspect.signature(Faults.add, eval_str=True).parameters.items() if name != "self"}
FAULTS, REQUESTS, CLOCK = "/faults", "/requests", "/clock"
TIME_KEYS = dict.fromkeys(("days", "hours", "minutes", "seconds", "milliseconds"), float) | {"expire_members": bool}
MOST_BYTES = 1 << 20  # bytes of a request's body
IDLE = 30  # seconds after which a silent connection is closed


class Refused(Exception):
    """A request that the control port does not serve, with the status of its response."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


# -- faults as data


def add_fault(faults: Faults, given: object) -> Fault:
    """Add the fault that an object of a YAML or JSON document describes. Raises FaultError."""
    if not isinstance(given, Mapping):
        raise FaultError(f"a fault must be a mapping such as {{api: PRODUCE, drop: true}}, not {given!r}")
    for name, value in given.items():
        if name not in KEYS:
            raise FaultError(f"unknown key {name!r}{nearest(str(name), KEYS)}")
        _check_type(name, value)
    if "api" not in given:
        raise FaultError("the fault names no api")
    return faults.add(**given)


def _check_type(name: str, value: object) -> None:
    default = KEYS[name].default
    kind: tuple[type, ...] = (str,)
    if isinstance(default, bool):
        kind = (bool,)
    elif isinstance(default, float):
        kind = (int, float)
    elif isinstance(default, int) or name in ("partition", "times"):
        kind = (int,)
    is_wrong_bool = isinstance(value, bool) and bool not in kind
    if value is not None and (is_wrong_bool or not isinstance(value, kind)):
        raise FaultError(f"{name}={value!r}: must be a value of the type {kind[-1].__name__}")


def described(fault: Fault) -> dict[str, Any]:
    """Return a fault as an object for JSON, without the values that are defaults."""
    values = {each.name: getattr(fault, each.name) for each in fields(fault) if each.name in KEYS}
    shown = {name: value for name, value in values.items() if value != KEYS[name].default}
    shown |= {name: value.name for name, value in shown.items() if name in ("api", "error")}
    return {**shown, **({"nth": fault.skip + 1} if fault.skip else {}), "count": fault.count}


def load_faults(faults: Faults, path: Path) -> None:
    """Add the faults of a YAML or JSON file, or none of them. Raises FaultError with one line, and OSError."""
    text = path.read_text(encoding="utf-8")
    try:
        yaml = importlib.import_module("yaml")
        load, mistakes, hint = yaml.safe_load, yaml.YAMLError, ""
    except ModuleNotFoundError:
        load, mistakes, hint = json.loads, ValueError, "this is not JSON; for YAML, install hmb[faults]: "
    try:
        found = load(text)
    except mistakes as error:
        raise FaultError(f"{path}: {hint}{' '.join(str(error).split())}") from error
    if not isinstance(found, list):
        raise FaultError(f"{path}: the file must be a list of faults")
    add_all(faults, found, f"{path}: ")


def add_all(faults: Faults, given: list[Any], origin: str = "") -> list[Fault]:
    """Add several faults, or none of them. Raises FaultError, whose message begins with `origin`."""
    added: list[Fault] = []
    for number, each in enumerate(given, 1):
        try:
            added.append(add_fault(faults, each))
        except FaultError as error:
            for fault in added:
                faults.remove(fault)
            raise FaultError(f"{origin}fault {number}: {error}") from error
    return added


# -- the clock as data


def advance(clock: ManualClock, given: Any) -> None:
    """Advance a clock by the time in an object of JSON. Raises ValueError."""
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
    """A server of HTTP on the loopback address, for the faults, the record of requests and the clock of a broker."""

    def __init__(self, faults: Faults, requests: RequestRecord, clock: ManualClock) -> None:
        """Bind a free port. Raises OSError."""
        self.clock = clock
        self.token = secrets.token_urlsafe(24)
        self._server = _Server(faults, requests, clock, self.token)
        self._thread = threading.Thread(target=self._server.serve_forever, name="control-port", daemon=True)

    @property
    def address(self) -> str:
        """The address of the server: `127.0.0.1:port`."""
        return f"127.0.0.1:{self._server.server_port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, faults: Faults, requests: RequestRecord, clock: ManualClock, token: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.faults = faults
        self.requests = requests
        self.clock = clock
        self.token = token


class _Handler(BaseHTTPRequestHandler):
    """Answers one request. `http.server` calls the methods `do_GET`, `do_POST` and `do_DELETE`."""

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
        except ValueError as error:  # FaultError, the errors of JSON and of Unicode, and those of `advance`
            self._send(HTTPStatus.BAD_REQUEST, {"error": str(error)})

    def _check(self) -> None:
        """Raise Refused for a request that does not come from a test on this computer."""
        port = self.server.server_port
        ours = [f"127.0.0.1:{port}", f"localhost:{port}"]
        if self.headers.get("Host") not in ours:
            raise Refused(HTTPStatus.FORBIDDEN, "the header Host names another server")
        if self.headers.get("Origin") not in (None, *(f"http://{each}" for each in ours)):
            raise Refused(HTTPStatus.FORBIDDEN, "the header Origin names another web site")
        given = self.headers.get("Authorization", "").encode()
        if not hmac.compare_digest(given, f"Bearer {self.server.token}".encode()):
            raise Refused(HTTPStatus.UNAUTHORIZED, "the token is missing or wrong; the broker prints it at its start")
        if self.path not in (FAULTS, REQUESTS, CLOCK):
            raise Refused(HTTPStatus.NOT_FOUND, f"no such path; use {FAULTS}, {REQUESTS} or {CLOCK}")

    def _result(self) -> object:
        return {FAULTS: self._faults, REQUESTS: self._requests, CLOCK: self._clock}[self.path]()

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
        """Write no line for a request. A test reads the broker's standard error."""
