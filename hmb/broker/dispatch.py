"""From a frame to an answer: decode, find the handler, encode.

Errors go three ways, by whose fault they are.  What a handler foresees it puts into its response as an error code.  A
peer that breaks the protocol (ProtocolError) is cut off, since nothing it sends after that can be trusted to start
where it should; only an ApiVersions request of an unknown version gets an answer, because that is how a newer client
finds out what we speak.  And a fault of ours, any other exception, closes that one connection, with the traceback in
the log, and no other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from hmb.broker.context import BrokerContext, RequestContext
from hmb.broker.errors import CloseConnection
from hmb.broker.handlers import HANDLERS, api_versions
from hmb.broker.later import Later
from hmb.broker.network.listeners import Listener
from hmb.broker.network.request_memory import UNCOUNTED, Account
from hmb.protocol.allowance import ALLOWANCE, pay_nothing
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.connection import ServerConnection, UnsupportedVersion
from hmb.protocol.errors import ProtocolError
from hmb.protocol.headers import RequestHeader
from hmb.protocol.primitives import Part
from hmb.protocol.schema import Request, Response

LOGGER = logging.getLogger(__name__)
Handler = Callable[[Any, RequestContext], Response | Later | None]
Finish = Callable[[], list[Part]]


class Dispatcher:
    """The requests of one connection."""

    def __init__(
        self,
        broker: BrokerContext,
        listener: Listener,
        handlers: Mapping[ApiKey, Handler] = HANDLERS,
        client_host: str = "",
        is_client_gone: Callable[[], bool] = lambda: False,
    ) -> None:
        self._broker = broker
        self._listener = listener
        self._handlers = handlers
        self._client_host = client_host
        self._is_client_gone = is_client_gone
        self._connection = ServerConnection()

    def begin(self, frame: memoryview, memory: Account = UNCOUNTED) -> list[Part] | Finish | None:
        """Answer one request, and release its frame.  Raises CloseConnection.

        Returns the answer, or None if the request wants none.  If the answer may go out together with later ones,
        returns a function that waits until it is true, and returns it (later.py).
        """
        try:
            with frame:  # only the records of a Produce keep it in memory: all other values are copies
                if memory is UNCOUNTED:
                    header, request = self._connection.receive(frame)
                else:
                    header, request = self._receive_limited(frame, memory)
        except UnsupportedVersion as error:
            if error.header.api_key != ApiKey.API_VERSIONS:
                raise CloseConnection(str(error)) from error
            return self._connection.respond(error.header, api_versions.for_unknown_version(), version=0)
        except ProtocolError as error:
            raise CloseConnection(f"malformed request: {error}") from error
        return self._handle(header, request, memory)

    def _receive_limited(self, frame: memoryview, memory: Account) -> tuple[RequestHeader, Request]:
        ALLOWANCE.spend = memory.take_values
        try:
            return self._connection.receive(frame)
        finally:
            ALLOWANCE.spend = pay_nothing

    def _handle(self, header: RequestHeader, request: Request, memory: Account) -> list[Part] | Finish | None:
        context = RequestContext(self._broker, self._listener, header, self._client_host, self._is_client_gone, memory)
        response = self._guarded(header, type(request), partial(self._handlers[request.api_key], request, context))
        if isinstance(response, Later):
            return partial(self._finish, header, type(request), response)
        return response

    def _finish(self, header: RequestHeader, kind: type[Request], later: Later) -> list[Part]:
        parts = self._guarded(header, kind, later.finish)
        assert isinstance(parts, list)
        return parts

    def _guarded(
        self, header: RequestHeader, kind: type[Request], step: Callable[[], Response | Later | None]
    ) -> list[Part] | Later | None:
        """The answer that a step gives, encoded; a fault of ours in it closes the connection."""
        try:
            response = step()
            return self._connection.respond(header, response) if isinstance(response, Response) else response
        except CloseConnection:
            raise
        except Exception as error:
            what = f"{kind.__name__} v{header.api_version} of client {header.client_id!r}"
            LOGGER.exception("%s failed", what)
            raise CloseConnection(f"{what} failed") from error
