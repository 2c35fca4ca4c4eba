"""A test sends JSON over HTTP to the control port, to add faults to a broker in another process.

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

A request that adds faults contains each fault as a JSON object. The object has the same keys as in a file of faults
(objects.py). Two examples are:
    {"api": "PRODUCE", "error": "NOT_LEADER_OR_FOLLOWER", "times": 2}
    {"disk": "full"}

The responses of the control port describe faults in the same JSON format as the requests of a test. In a
response, a fault of client requests also has the key `count`: the number of requests that the fault has changed.

If a request to the control port is wrong, the response is one line: `{"error": "..."}`.

A test sends `DELETE /requests` before its client starts, because the broker records client requests only after
the first use of `/requests`. Later, the test gets the recorded requests with `GET /requests`.

A request `POST /clock` contains a JSON object. The keys of the object are the arguments of `ManualClock.advance`, for
example `{"hours": 1, "expire_members": true}`. The control port moves the broker's clock forward. The broker then does
the work that is due at the new time. For example, it deletes old records. The control port responds after this work.

A request `POST /corrupt` also contains a JSON object. Its keys are the arguments of `DiskFaults.corrupt`, for example
`{"topic": "orders", "offset": 5}`.

Each request to the control port must contain a token, which the broker prints at its start. The control port refuses
requests that come from web pages (hmb/monitoring/http_server.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from hmb.broker.config.keys import nearest
from hmb.broker.lifecycle import BrokerServer
from hmb.defaults import CORRUPT_PATH, FAULTS_PATH, REQUESTS_PATH
from hmb.monitoring.http_server import HttpRequest, HttpResponse, HttpServer, json_response
from hmb.monitoring.refusal import Refused
from hmb.protocol.errors import KafkaError
from hmb.testing.clock import ManualClock
from hmb.testing.faults.objects import AllFaults, add_all, corrupt, described
from hmb.testing.request_record import RequestRecord

CLOCK_PATH = "/clock"
TIME_KEYS = dict.fromkeys(("days", "hours", "minutes", "seconds", "milliseconds"), float) | {"expire_members": bool}


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
            raise ValueError(f"{name}={value!r}: the value must have the type {wanted.__name__}")
    clock.advance(**given)


# -- the server


class ControlPort:
    """An HTTP server on 127.0.0.1 that controls a broker's faults, clock and recorded requests."""

    def __init__(self, faults: AllFaults, requests: RequestRecord, clock: ManualClock) -> None:
        """Create the server on a free port. `start` begins to serve requests. Raises OSError."""
        self.clock = clock
        self._faults = faults
        self._requests = requests
        self._server = HttpServer()
        self._add(FAULTS_PATH, self._answer_faults, "GET", "POST", "DELETE")
        self._add(REQUESTS_PATH, self._answer_requests, "GET", "DELETE")
        self._add(CLOCK_PATH, self._answer_clock, "GET", "POST")
        self._add(CORRUPT_PATH, self._answer_corrupt, "POST")

    def _add(self, path: str, answer: Callable[[HttpRequest], object], *methods: str) -> None:
        def respond(request: HttpRequest) -> HttpResponse:
            try:
                return json_response(answer(request))
            except (KafkaError, ValueError) as error:  # FaultError and errors of JSON or Unicode are ValueErrors.
                raise Refused(HTTPStatus.BAD_REQUEST, str(error)) from error

        self._server.add(path, respond, *methods)

    @property
    def address(self) -> str:
        """The address of the server: `127.0.0.1:port`."""
        return self._server.address

    @property
    def token(self) -> str:
        return self._server.token

    def attach(self, server: BrokerServer) -> None:
        """Let the control port move the clock of a started broker, and simulate errors of this broker's disk."""
        self.clock.attach(server)
        self._faults.disk.attach(server)

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    def _answer_clock(self, request: HttpRequest) -> dict[str, int]:
        if request.method == "POST":
            advance(self.clock, json.loads(request.body))
        return {"now_ms": self.clock.now_ms()}

    def _answer_requests(self, request: HttpRequest) -> list[dict[str, Any]]:
        self._requests.start()
        if request.method == "DELETE":
            self._requests.clear()
        return [each.as_json() for each in self._requests]

    def _answer_faults(self, request: HttpRequest) -> list[dict[str, Any]]:
        if request.method == "DELETE":
            self._faults.clear()
        if request.method != "POST":
            return [described(each) for each in self._faults.added]
        body = json.loads(request.body)
        return [described(each) for each in add_all(self._faults, body if isinstance(body, list) else [body])]

    def _answer_corrupt(self, request: HttpRequest) -> dict[str, Any]:
        corrupt(self._faults.disk, json.loads(request.body))
        return {}
