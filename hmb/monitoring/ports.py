"""Serves the state, a web page, the metrics and the health of a broker over HTTP.

The options `--state`, `--ui` (for the web page) and `--metrics` of `hmb broker` each open an HTTP port. Options with
the same address share one port. Every port also serves `/healthz`, which reports whether the broker accepts records.
The port of `--ui` also serves the state.

The commands `hmb state`, `hmb top` and `hmb ui` must find the ports of a running broker. For these commands, the broker
writes links to its state and to its page into a file in its data directory. The link to the state contains the *owner's
token*, a secret for the user who runs the broker. Only this user can read the file.

When the broker starts, it prints links to its state and its page. These links contain a secret token that
stays the same after a restart, because the broker stores it in a file. A page that is open in a browser
therefore still works. The owner's token (only for the broker's user) changes at each start.

*Other computers.* The broker's state contains the names of topics and clients, and the broker's page also
shows the values of records. So if other computers can reach the HTTP port for the state or for the page, this
port needs TLS and a login. If TLS or the login is missing, the broker does not start.

For TLS, an HTTP port uses the broker's settings `ssl.keystore.*`. Users log in with the same name and
password as Kafka clients that use SASL.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Self

from hmb.broker.lifecycle import BrokerServer
from hmb.broker.security.tls import TlsListener
from hmb.defaults import DEFAULT_HOST, HEALTH_PATH, SLOWEST_REQUESTS_PATH, STATE_FILE, TOKEN_FILE
from hmb.monitoring.collecting import collect, refusal
from hmb.monitoring.http_server import TEXT, HttpRequest, HttpResponse, HttpServer, is_loopback, json_response
from hmb.monitoring.logins import Logins
from hmb.monitoring.metrics import CONTENT_TYPE, metrics_text
from hmb.monitoring.page.own_broker import OwnBrokerPage
from hmb.monitoring.page.recent_requests import RecentRequests
from hmb.monitoring.page.routes import PAGE, STATE, number_of
from hmb.monitoring.rights import check_may_see_requests, visible
from hmb.monitoring.sampling import Sampler, sample_of
from hmb.monitoring.state import BrokerState, as_json
from hmb.monitoring.state_cache import StateCache
from hmb.security.stores import TlsSettingError, TlsSettings

METRICS_PATH = "/metrics"


class HttpAddress(NamedTuple):
    """The address of an HTTP server. Port 0 selects a free port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `[HOST:]PORT`. The default host is DEFAULT_HOST. Raises ValueError."""
        host, _, port = text.rpartition(":")
        if not port.isascii() or not port.isdecimal() or int(port) > 65535:
            raise ValueError(
                f"{text!r} is not [HOST:]PORT; the port is a number from 0 to 65535, and port 0 selects a free port"
            )
        return cls(host.strip("[]") or DEFAULT_HOST, int(port))


class PublicAddressError(ValueError):
    """An error for an HTTP port that other computers can reach, but that the broker cannot protect.

    Only a port for the broker's state or page can cause this error, because such a port needs TLS and a login. The
    broker raises the error if it has no usable TLS key, or if no user has a password.
    """

    def __init__(self, address: HttpAddress, problem: str) -> None:
        super().__init__(
            f"{address.host}: other computers can reach this address, and {problem}; state and page need TLS "
            "(ssl.keystore.location) and a user with a password (a listener with SASL) there; or use a host such as "
            f"{DEFAULT_HOST}"
        )


class MonitoringPorts:
    """The HTTP servers for the state, the page and the metrics of one broker."""

    def __init__(
        self,
        state: HttpAddress | None = None,
        metrics: HttpAddress | None = None,
        ui: HttpAddress | None = None,
        properties: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Bind the HTTP ports for the broker's state, metrics and page (`ui`). `start` begins to serve requests.

        Raises OSError if a port is not free. Raises PublicAddressError if other computers can reach the state or the
        page, but the broker's settings (`properties`) contain no usable TLS key.
        """
        self._public = [it for it in (state, ui) if it is not None and not is_loopback(it.host)]
        self._tls = _tls(self._public[0], properties) if self._public else None
        self._servers: dict[HttpAddress, HttpServer] = {}
        self._file: Path | None = None
        self._page: OwnBrokerPage | None = None
        self._requests: RecentRequests | None = None
        self._sampler: Sampler | None = None
        try:
            self.ui = None if ui is None else self._server(ui)
            self.state = self.ui if state is None else self._server(state)
            self.metrics = None if metrics is None else self._server(metrics)
        except BaseException:
            self.stop()
            raise

    def _server(self, address: HttpAddress) -> HttpServer:
        if address not in self._servers:
            self._servers[address] = HttpServer(*address, tls=self._tls if address in self._public else None)
        return self._servers[address]

    @property
    def urls(self) -> dict[str, str]:
        """The links to the broker's state (key "state"), to its page ("ui") and to its metrics ("metrics").

        The links to the state and to the page contain a secret token, because the broker requires this token there.
        """
        urls = {}
        if self.state is not None:
            urls["state"] = f"{self.state.url}{STATE}?token={self.state.token}"
        if self.ui is not None:
            urls["ui"] = f"{self.ui.url}{PAGE}?token={self.ui.token}"
        if self.metrics is not None:
            urls["metrics"] = f"{self.metrics.url}{METRICS_PATH}"
        return urls

    def start(self, broker: BrokerServer) -> None:
        """Start the HTTP servers. The broker must already be started.

        Raises OSError if a file cannot be written. Raises PublicAddressError if other computers can reach the port for
        the state or the port for the page, but no user of the broker has a password.
        """
        logins = Logins(broker)
        if self._public and not logins.has_passwords:
            raise PublicAddressError(self._public[0], "no user of this broker has a password")
        if self.state is not None:
            self._sampler = Sampler(partial(sample_of, broker))
            self._sampler.start()
        current = partial(collect, broker, self._sampler)
        self._requests = RecentRequests(broker.context.requests)
        if self.state is not None:
            owner_token = secrets.token_urlsafe(24)
            token = _kept_token(broker.data_dir / TOKEN_FILE, self.state.token)
            for server in (self.state, self.ui):
                if server is not None:
                    server.admission.token = token
                    server.admission.owner_token = owner_token
                    server.admission.logins = logins
                    server.add(STATE, partial(_respond_state, current))
                    server.add(SLOWEST_REQUESTS_PATH, partial(_respond_slowest, self._requests))
        if self.ui is not None:
            collected = partial(collect, broker, self._sampler, StateCache())
            self._page = OwnBrokerPage(self.ui, broker, collected, self._requests)
        if self.metrics is not None:
            self.metrics.add(METRICS_PATH, partial(_respond_metrics, current), is_public=True)
        for server in self._servers.values():
            server.add(HEALTH_PATH, partial(_respond_health, broker), is_public=True)
            server.start()
        if self.state is not None:
            self._file = broker.data_dir / STATE_FILE
            found = {name: url for name, url in self.urls.items() if name != "metrics"}
            found["state"] = f"{self.state.url}{STATE}?token={owner_token}"
            _write_private(self._file, json.dumps(found) + "\n")

    def stop(self) -> None:
        if self._page is not None:
            self._page.stop()
        if self._requests is not None:
            self._requests.stop()
        if self._sampler is not None:
            self._sampler.stop()
        for server in self._servers.values():
            server.stop()
        if self._file is not None:
            self._file.unlink(missing_ok=True)


def _tls(address: HttpAddress, properties: Mapping[str, str]) -> TlsListener:
    """Return the TLS listener for a public address. Raises PublicAddressError if the settings contain no usable key."""
    settings = TlsSettings.from_properties(properties)
    if not settings.has_key:
        raise PublicAddressError(address, "the broker has no key for TLS")
    try:
        return TlsListener(settings, "none")
    except TlsSettingError as error:
        raise PublicAddressError(address, f"{error.setting} {error.problem}") from error


def _respond_state(current: Callable[[], BrokerState], request: HttpRequest) -> HttpResponse:
    return json_response(as_json(visible(current(), request.reader)))


def _respond_slowest(requests: RecentRequests, request: HttpRequest) -> HttpResponse:
    """Respond immediately with the slowest requests of each API that the broker has recorded so far.

    After this, the broker continues to record requests for N seconds. The client sets N with `?seconds=N` in the URL.
    """
    check_may_see_requests(request.reader)
    return json_response(requests.slowest(number_of(request, "seconds")))


def _respond_metrics(current: Callable[[], BrokerState], request: HttpRequest) -> HttpResponse:
    return HttpResponse(metrics_text(current), CONTENT_TYPE)


def _respond_health(broker: BrokerServer, request: HttpRequest) -> HttpResponse:
    """Respond with status 200 if all partitions accept records. If not, respond with 503 and the reasons."""
    problems = [f"{name}: {reason}" for name, log in broker.logs.items() if (reason := refusal(log)) is not None]
    if not problems:
        return HttpResponse(b"ok\n", TEXT)
    return HttpResponse(("\n".join(problems) + "\n").encode(), TEXT, HTTPStatus.SERVICE_UNAVAILABLE)


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _kept_token(path: Path, new: str) -> str:
    """Return the token in the file `path`.

    If the file is missing or not private, write a private file with the token `new`, and return `new`.
    """
    with suppress(OSError, ValueError):
        if (kept := path.read_text(encoding="ascii").strip()) and not path.stat().st_mode & 0o077:
            return kept
    _write_private(path, f"{new}\n")
    return new
