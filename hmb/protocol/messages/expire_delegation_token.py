"""ExpireDelegationToken (40): make a token invalid, now or after a time (KIP-48)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response


class ExpireDelegationTokenRequest(Request, api_key=ApiKey.EXPIRE_DELEGATION_TOKEN, versions="1-2", flexible="2+"):
    """The HMAC of the token, and the time (ms) from now until the token expires.

    The HMAC is the password of the token, so `repr` does not show it.
    """

    hmac:                  bytes = t.bytestring()
    expiry_time_period_ms: int   = t.int64()

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}(expiry_time_period_ms={self.expiry_time_period_ms}, [hidden])"


class ExpireDelegationTokenResponse(Response, api_key=ApiKey.EXPIRE_DELEGATION_TOKEN, versions="1-2", flexible="2+"):
    """The time (ms) at which the token expires."""

    error_code:          int = t.int16()
    expiry_timestamp_ms: int = t.int64()
    throttle_time_ms:    int = t.int32()
