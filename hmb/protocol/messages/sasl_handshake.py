"""SaslHandshake (17): choose the SASL mechanism of a connection (KIP-43, KIP-152)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response


class SaslHandshakeRequest(Request, api_key=ApiKey.SASL_HANDSHAKE, versions="0-1"):
    """Names the SASL mechanism that the client chooses.

    Both versions have the same fields, but different login messages follow. After version 0, each login message is
    a frame without a Kafka request header. After version 1, each login message is in a SaslAuthenticate request.
    """

    mechanism: str = t.string()


class SaslHandshakeResponse(Response, api_key=ApiKey.SASL_HANDSHAKE, versions="0-1"):
    """The mechanisms that the listener offers. Both versions have the same fields."""

    error_code: int       = t.int16()
    mechanisms: list[str] = t.array(t.string)
