"""The request log: one line for each request, so that a user can see what a client does.

These lines show two Produce requests. The second has acks=0, so it gets no response:
    127.0.0.1:41281 Produce v13 (5) from 'hmb': 214 B, response 60 B after 1.8 ms
    127.0.0.1:41281 Produce v13 (6) from 'hmb': 214 B, no response

In a line of the request log, the number in parentheses is the correlation id of the request. The time at the end of the
line is the time from the arrival of the request until its response is ready. This time includes waits: for example, a
Fetch request can wait for new records for up to `fetch.max.wait.ms`.

The broker writes the request log only if the logger of this module has the level DEBUG (`hmb broker -vv`). When a
client connects, the server checks this level once for the whole connection. Without the request log, requests therefore
take no extra time. A new level applies only to connections that clients open after the change.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from hmb.broker.deferred import Deferred
from hmb.broker.dispatch import Dispatcher, EncodedResponse
from hmb.broker.network.request_memory import UNCOUNTED, Account
from hmb.protocol.errors import ProtocolError
from hmb.protocol.framing import LENGTH_SIZE
from hmb.protocol.headers import RequestHeader
from hmb.protocol.messages import api_name

LOGGER = logging.getLogger(__name__)


class LoggedDispatcher(Dispatcher):
    """A dispatcher that logs each request when its response is ready."""

    def __init__(self, peer: str, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._peer = peer

    def begin(self, frame: memoryview, account: Account = UNCOUNTED) -> EncodedResponse | Deferred[EncodedResponse]:
        started = time.perf_counter()
        login = self._client.login
        # A raw SASL message (without a Kafka header) can contain a password, so the log must not show its content.
        is_token = login is not None and login.expects_raw_token
        request = f"{self._peer} {'a SASL message' if is_token else _described(frame)}: {len(frame) + LENGTH_SIZE} B"
        response = super().begin(frame, account)
        if not isinstance(response, Deferred):
            _log(request, response, started)
            return response

        def result() -> EncodedResponse:
            parts: EncodedResponse = response.result()
            _log(request, parts, started)
            return parts

        return Deferred(result)


def _described(frame: memoryview) -> str:
    """Return a text with the API, the version, the correlation id and the client id of a request."""
    try:
        header, _ = RequestHeader.decode_prefix(frame, 1)
    except ProtocolError:
        return "an unreadable request"
    api = api_name(header.api_key)
    return f"{api} v{header.api_version} ({header.correlation_id}) from {header.client_id!r}"


def _log(request: str, parts: EncodedResponse, started: float) -> None:
    if not parts:
        LOGGER.debug("%s, no response", request)
        return
    length = parts[0]
    assert isinstance(length, bytes | bytearray | memoryview)  # The first part of a frame is its length.
    size = LENGTH_SIZE + int.from_bytes(length[:LENGTH_SIZE], "big")
    LOGGER.debug("%s, response %d B after %.1f ms", request, size, 1000 * (time.perf_counter() - started))
