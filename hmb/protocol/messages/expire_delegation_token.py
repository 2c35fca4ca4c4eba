"""ExpireDelegationToken (40): make a delegation token invalid, at once or after a given time (KIP-48)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response


class ExpireDelegationTokenRequest(Request, api_key=ApiKey.EXPIRE_DELEGATION_TOKEN, versions="1-2", flexible="2+"):
    """The HMAC of a delegation token, and the time (ms) from now until the token expires.

    A client logs in with the HMAC as its password, so `repr` does not show the HMAC.
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
