"""Dispatch: the steps from the bytes of a request to the bytes of its response.

The dispatcher decodes the request, calls the handler of its API, and encodes the response.

The broker handles an error in one of three ways:
- *An expected error*, such as an unknown topic: the handler puts an error code into its response.
- *A client that breaks the protocol* (ProtocolError): the broker closes the connection. It cannot encode a
  response to a request that it does not understand. The only exception is an ApiVersions request of an unknown
  version: the broker responds with the versions that it supports, because the client may be newer than the
  broker.
- *An internal error*, any other exception: the broker logs the traceback and closes this one connection.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from hmb.broker.context import BrokerContext, ConnectedClient, RequestContext
from hmb.broker.deferred import Deferred
from hmb.broker.errors import CloseConnection
from hmb.broker.handlers import HANDLERS, api_versions
from hmb.broker.network.listeners import Listener
from hmb.broker.network.request_memory import UNCOUNTED, Account
from hmb.defaults import BUG
from hmb.protocol.allowance import ALLOWANCE, pay_nothing
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.connection import ServerConnection, UnsupportedVersion
from hmb.protocol.errors import ProtocolError
from hmb.protocol.headers import API_KEY_SIZE, RequestHeader
from hmb.protocol.primitives import Part
from hmb.protocol.schema import Request, Response

LOGGER = logging.getLogger(__name__)
Handler = Callable[[Any, RequestContext], Response | Deferred[Response] | None]
EncodedResponse: TypeAlias = Sequence[Part]  # the parts of a frame; empty if the client expects no response


class Dispatcher:
    """Handles the requests of one connection, and returns the encoded responses.

    `handlers` contains one function for each API. By default, these are the functions in the table HANDLERS.

    A running broker puts up to three wrappers around each handler (lifecycle.py):

    - `counted` counts each request (counting.py).
    - `guarded` checks the ACLs, if the broker has an authorizer (security/acls/guards.py).
    - `throttled` slows down clients that exceed a quota (security/quotas/throttling.py). If no quota concerns an
      API, the handler of this API does not get this wrapper.
    """

    def __init__(
        self,
        broker: BrokerContext,
        listener: Listener,
        handlers: Mapping[ApiKey, Handler] = HANDLERS,
        client: ConnectedClient | None = None,
    ) -> None:
        self._broker = broker
        self._listener = listener
        self._handlers = handlers
        self._client = client or ConnectedClient()
        self._connection = ServerConnection(broker.versions)

    def begin(self, frame: memoryview, account: Account = UNCOUNTED) -> EncodedResponse | Deferred[EncodedResponse]:
        """Handle the request in `frame`, and return the response. Raises CloseConnection.

        If the handler defers its response, the method returns a `Deferred` object at once. The method `result` of this
        object waits for the response and encodes it. `result` can also raise CloseConnection.
        """
        login = self._client.login
        if login is not None:  # The listener uses SASL.
            if login.expects_raw_token:
                return login.raw_response(bytes(frame))
            login.admit(int.from_bytes(frame[:API_KEY_SIZE]))
        # `ALLOWANCE.spend` limits the memory of decoded values. Handlers can also decode values, so the limit stays
        # until the handler returns. The code uses `try` and `finally`, because a context manager would take 0.4 us
        # longer.
        ALLOWANCE.spend = account.take_values
        try:
            return self._begin(frame, account)
        finally:
            ALLOWANCE.spend = pay_nothing

    def _begin(self, frame: memoryview, account: Account) -> EncodedResponse | Deferred[EncodedResponse]:
        try:
            # After decoding, the `with` block releases `frame`, a memoryview of the request's bytes. The records in
            # `request` have memoryviews of their own, so the handler can still read the records.
            with frame:
                header, request = self._connection.receive(frame)
        except UnsupportedVersion as error:
            offered = self._broker.versions
            is_offered = offered is None or ApiKey.API_VERSIONS in offered
            if error.header.api_key != ApiKey.API_VERSIONS or not is_offered:
                raise CloseConnection(str(error)) from error
            response = api_versions.for_unknown_version(offered)
            return self._connection.respond(error.header, response, version=0)
        except ProtocolError as error:
            raise CloseConnection(f"malformed request: {error}") from error
        return self._handle(header, request, account)

    def _handle(
        self, header: RequestHeader, request: Request, account: Account
    ) -> EncodedResponse | Deferred[EncodedResponse]:
        self._client.last_header = header
        self._client.requests += 1
        context = RequestContext(self._broker, self._listener, header, self._client, account)
        try:
            response = self._handlers[request.api_key](request, context)
            if isinstance(response, Deferred):
                return Deferred(partial(self._result, header, type(request), response))
            return () if response is None else self._connection.respond(header, response)
        except CloseConnection:
            raise
        except Exception as error:
            raise _internal_error(header, type(request)) from error

    def _result(self, header: RequestHeader, kind: type[Request], response: Deferred[Response]) -> EncodedResponse:
        try:
            return self._connection.respond(header, response.result())
        except CloseConnection:
            raise
        except Exception as error:
            raise _internal_error(header, kind) from error


def _internal_error(header: RequestHeader, kind: type[Request]) -> CloseConnection:
    """Log the current exception with its traceback. Return a CloseConnection error, which the caller raises."""
    why = f"{kind.__name__} v{header.api_version} of client {header.client_id!r} failed"
    LOGGER.exception("%s; %s", why, BUG)
    return CloseConnection(why)
