"""Serves a page about a remote broker. The page's data comes from the broker's Kafka APIs.

The command `hmb ui -b ADDRESS` serves this page. A broker of HMB can also serve a page about itself (`hmb broker
--ui`). Both pages use the same HTML, styles and scripts. The broker reads batches and offsets from its own log
files. The command `hmb ui` cannot read these files, so it sends Kafka requests to the broker. For this purpose,
the command has three routes that the broker does not have:
    GET /fetched          the batches from an offset on, read with Fetch requests
    GET /fetched-batch    one batch with its records and bytes, read with a Fetch request
    GET /offset-of-time   the offset of a time, read with a ListOffsets request
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

from hmb.client.connection import ConnectionFailed
from hmb.defaults import DEFAULT_HOST
from hmb.monitoring.http_server import HttpRequest, HttpResponse, HttpServer, json_response
from hmb.monitoring.page.feed import REMOTE_PACE
from hmb.monitoring.page.routes import PAGE, STATE, PageRoutes, number_of
from hmb.monitoring.refusal import Refused
from hmb.monitoring.remote.reader import RemoteBroker
from hmb.monitoring.sampling import Sampler, sample_of_state
from hmb.monitoring.state import BrokerState, as_json
from hmb.protocol.errors import HmbError, KafkaError
from hmb.protocol.topics import TopicPartition


class RemotePage:
    """An HTTP server on the user's computer, with a page about a broker that runs somewhere else.

    A `RemoteBroker` requests the data for the page from the remote broker.
    """

    def __init__(self, broker: RemoteBroker, port: int) -> None:
        """Bind the port, and read the broker's state once to find errors before the page is served.

        Raises OSError if the port cannot be bound. Raises KafkaError or ConnectionFailed if the state cannot be read.
        """
        self._server = HttpServer(DEFAULT_HOST, port)
        try:
            broker.state()
        except BaseException:
            self._server.stop()
            raise
        self._sampler = Sampler(lambda: sample_of_state(_current(broker)))
        current = partial(_current, broker, self._sampler)
        self._routes = _RemoteRoutes(self._server, broker, current)
        self._server.add(STATE, lambda _: json_response(as_json(current())))

    @property
    def url(self) -> str:
        return f"http://{self._server.address}{PAGE}?token={self._server.token}"

    def start(self) -> None:
        self._sampler.start()
        self._server.start()

    def stop(self) -> None:
        self._routes.stop()
        self._server.stop()
        self._sampler.stop()


def _current(broker: RemoteBroker, sampler: Sampler | None = None) -> BrokerState:
    """Return the state of `broker`. Raises RuntimeError if the state cannot be read.

    `RemoteBroker` raises HmbError, but the callers, `Feed` and `Sampler`, expect RuntimeError. So this function
    raises RuntimeError instead.
    """
    try:
        return broker.state(sampler)
    except HmbError as error:
        raise RuntimeError(str(error)) from error


class _RemoteRoutes(PageRoutes):
    """The routes of a page about a broker that runs somewhere else.

    Besides the routes of every page, the class has three more. Two of them return batches. The third returns the
    offset of the first record at or after a given time.
    """

    def __init__(self, server: HttpServer, broker: RemoteBroker, current: Callable[[], BrokerState]) -> None:
        super().__init__(server, current, REMOTE_PACE)
        server.add("/fetched", lambda request: _read(request, "offset", broker.batches))
        server.add("/fetched-batch", lambda request: _read(request, "offset", broker.batch))
        server.add("/offset-of-time", lambda request: _read(request, "timestamp", broker.offset_of_time))


def _read(request: HttpRequest, name: str, read: Callable[[TopicPartition, int], Any]) -> HttpResponse:
    partition = TopicPartition(request.query.get("topic", ""), number_of(request, "partition"))
    try:
        return json_response(read(partition, number_of(request, name)))
    except KafkaError as error:
        raise Refused(HTTPStatus.NOT_FOUND, error.message) from error
    except ConnectionFailed as error:
        raise Refused(HTTPStatus.BAD_GATEWAY, str(error)) from error
