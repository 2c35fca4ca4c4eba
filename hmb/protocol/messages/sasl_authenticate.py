"""SaslAuthenticate (36): exchange one message of a SASL mechanism (KIP-152, KIP-368)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response


class SaslAuthenticateRequest(Request, api_key=ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+"):
    """A message that the client sends to log in. Version 2 uses the flexible encoding (KIP-482).

    The message may contain a password, so `repr` does not show its bytes.
    """

    auth_bytes: bytes = t.bytestring()

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}(auth_bytes=[{len(self.auth_bytes)} bytes])"


class SaslAuthenticateResponse(Response, api_key=ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+"):
    """The broker's answer to a SaslAuthenticate request. Version 1 adds the lifetime of the session.

    Version 2 uses the flexible encoding (KIP-482).
    """

    error_code:          int        = t.int16()
    error_message:       str | None = t.string(nullable="0+")
    auth_bytes:          bytes      = t.bytestring()
    session_lifetime_ms: int        = t.int64("1+", ignorable=True)  # 0 means that the session does not end
