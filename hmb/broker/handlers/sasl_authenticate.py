"""SaslAuthenticate: exchange one message of the SASL mechanism that the client has chosen with SaslHandshake.

Versions: 0-2; version 2 uses the flexible encoding (KIP-482).
Permissions: none; every client may send this request.
Behavior: if the login fails, the error is SASL_AUTHENTICATION_FAILED (58), and the broker closes the connection. Only
    the broker's log contains the reason, so that an attacker does not learn whether the name or the password is
    wrong. If the listener does not use SASL, or if the client has not sent SaslHandshake before, the error is
    ILLEGAL_SASL_STATE (34).
Version notes: from version 1 on, the response contains the lifetime of the session (ms). It is 0 (no limit)
    unless `connections.max.reauth.ms` is set or the client has logged in with a token that expires.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(request: SaslAuthenticateRequest, context: RequestContext) -> SaslAuthenticateResponse:
    response = SaslAuthenticateResponse(error_message=None)
    with error_code_in(response):
        login = context.client.login
        if login is None:
            raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, "this listener does not use SASL")
        response.auth_bytes = login.receive(bytes(request.auth_bytes))
        response.session_lifetime_ms = login.lifetime_ms
    return response
