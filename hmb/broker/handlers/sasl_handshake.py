"""SaslHandshake: choose the SASL mechanism of a connection.

Versions: 0-1; not in the flexible encoding.
Permissions: none; every client may send this request.
Behavior: if the client chooses an unknown mechanism, the response contains UNSUPPORTED_SASL_MECHANISM (33) and the
    supported mechanisms. The broker then closes the connection. The error is ILLEGAL_SASL_STATE (34) in three
    cases: the listener does not use SASL, the client is in the middle of a login, or the client has already logged
    in. But a client whose session has a limited lifetime can renew its login with this request (KIP-368).
Version notes: after a SaslHandshake of version 0, the client sends the messages of the mechanism as frames without a
    header. After version 1, the client sends them in SaslAuthenticate requests.
Left out: the mechanism GSSAPI (Kerberos). A client that needs GSSAPI cannot log in.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(request: SaslHandshakeRequest, context: RequestContext) -> SaslHandshakeResponse:
    login = context.client.login
    if login is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    response = SaslHandshakeResponse(mechanisms=login.mechanisms)
    try:
        login.choose(request.mechanism, context.version)
    except KafkaError as error:
        response.error_code = error.code
        if error.code is ErrorCode.ILLEGAL_SASL_STATE:
            response.mechanisms = []
    return response
